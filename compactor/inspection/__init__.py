"""What stands in a file or a log, and why, for people who look."""
