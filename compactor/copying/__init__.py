"""Copies of log directories for `run --output`, and the manifest of what a copy holds."""
