"""Faults at each stage of a run: each is named, and nothing waits forever."""
