"""The command line: parses words, executes a command, returns an exit code."""
