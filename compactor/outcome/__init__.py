"""The outcome of a command as values: the report of a round, its rows, and the exit code."""
