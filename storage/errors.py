"""Errors about data: every one names the file and the byte at which it was noticed."""


class LogCompactionError(Exception):
    """Whatever this project raises on purpose."""


class CorruptFileError(LogCompactionError):
    """A file breaks its format. Nothing was changed."""

    def __init__(self, path: str, position: int, problem: str) -> None:
        super().__init__(path, position, problem)  # all three, so that it can be pickled
        self.path, self.position, self.problem = path, position, problem

    def __str__(self) -> str:
        return f"{self.path}, byte {self.position}: {self.problem}"


class UnsupportedFormatError(CorruptFileError):
    """A file is sound as far as is known, but of a version, codec or kind not handled."""


class UnsupportedBackendError(LogCompactionError):
    """A file system that does not promise what the operation needs."""
