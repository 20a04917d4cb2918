"""Whether this machine, and a log directory on it, are fit for a run, and what helps if not."""
