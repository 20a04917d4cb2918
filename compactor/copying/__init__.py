"""A log directory copied to another place, with a manifest of what the copy holds."""
