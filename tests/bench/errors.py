"""What can stop a benchmark."""


class BenchError(Exception):
    """A side did not do its work, or not the same work; the message says which and why."""
