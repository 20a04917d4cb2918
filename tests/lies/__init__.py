"""Seeded lies in what tasks write and return: which proof catches each."""
