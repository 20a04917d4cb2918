"""The exit code that a shell, a scheduler or spark-submit sees of a process."""


def shell_code(returncode: int) -> int:
    """128 and the signal's number where a signal ended it.

    Where Ctrl-C comes while CPython compiles a string, as dataclasses let it, it remembers that and
    ends by that signal at the very end, whatever code was returned to it.
    """
    return 128 - returncode if returncode < 0 else returncode
