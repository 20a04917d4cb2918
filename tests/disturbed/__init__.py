"""Runs that are disturbed at each of their file operations: by errors, and by another writer."""
