"""Keeps what a run replaces, and brings it back."""
