"""A log of segments: listing, reading, writing, producers, recovery."""
