"""Log directories as a whole: what is in them, whose they are, what is missing, and their locks."""
