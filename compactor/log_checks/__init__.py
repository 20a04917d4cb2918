"""Checks of one log by itself: its batches, its segments, the offsets that are missing."""
