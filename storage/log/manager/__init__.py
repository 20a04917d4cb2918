"""Many logs in several log directories: their start, their tasks, their end."""
