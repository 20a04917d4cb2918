"""Scripts of operations on one log, line by line, with a transcript of what came of each."""
