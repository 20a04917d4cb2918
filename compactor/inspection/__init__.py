"""What is in a file or a log, and why, for `dump`, `explain` and `inspect`."""
