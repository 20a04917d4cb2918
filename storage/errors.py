"""Errors about data, each with its file and byte, and the reason code of every error."""

import errno
import json
from collections.abc import Mapping, Sequence

_SHOWN_CHARACTERS = 60


class LogCompactionError(Exception):
    """Every error that this project raises on purpose.

    reason_code: why, for programs; `compactor.reason_codes` lists the codes.
    """

    reason_code: str = "failed"


class CorruptFileError(LogCompactionError):
    """A file breaks its format. Nothing was changed."""

    reason_code = "damaged"

    def __init__(self, path: str, position: int, problem: str) -> None:
        super().__init__(path, position, problem)  # all three, so that it can be pickled
        self.path, self.position, self.problem = path, position, problem

    def __str__(self) -> str:
        return f"{self.path}, byte {self.position}: {self.problem}"


class UnsupportedFormatError(CorruptFileError):
    """A file is sound as far as is known, but of a version, codec or kind not handled."""

    reason_code = "unsupported-format"


class ConfigError(LogCompactionError):
    """A setting or an argument is unknown or impossible; the message names it. Exit code 2.

    A caller in Python reads the names of parameters. The command line puts those of its options in
    their place (`text`).
    """

    reason_code = "wrong-configuration"

    def __init__(
        self, problem: str, name: str = "", value: object = None, others: Sequence[str] = ()
    ) -> None:
        """Make an error whose message begins with name and value, where there are any.

        Args:
            problem: What is wrong; a pair of braces in it for each of the others.
            name: Of the parameter, or of the place where the setting stands.
            value: Its value, where the message shows it.
            others: Further parameters that the problem mentions.
        """
        super().__init__(problem, name, value, others)  # all, so that it can be pickled
        self.problem, self.name, self.value, self.others = problem, name, value, others
        self.paths: Mapping[str, str] = {}  # to each parameter in the call, as `options.work_dir`

    def text(self, names: Mapping[str, str]) -> str:
        """Return the message with these names in the place of the parameters'."""
        problem = self.problem
        for each in self.others:
            problem = problem.replace("{}", names.get(each, each), 1)
        name = names.get(self.name, self.name)
        subject = name
        if self.value is not None:
            subject = f"{name} {self.value}" if name else str(self.value)
        return f"{subject}: {problem}" if subject else problem

    def __str__(self) -> str:
        return self.text(self.paths)


class UsageError(ConfigError):
    """An argument is impossible; the message names its parameter. Nothing was changed."""

    reason_code = "wrong-usage"


class CleaningFailedError(LogCompactionError):
    """The round as a whole failed: no Java, Spark did not start, a job was lost. Exit code 1."""

    reason_code = "spark-failed"


class UnfitProcessorError(LogCompactionError):
    """The processor lacks what kernels are compiled for. Nothing was done."""

    reason_code = "unfit-processor"


class UnsupportedBackendError(LogCompactionError):
    """A file system that does not promise what the operation needs."""

    reason_code = "file-system"


_OF_ERRNO = {
    errno.ENOSPC: "no-room",
    errno.EDQUOT: "no-room",
    errno.EACCES: "no-permission",
    errno.EPERM: "no-permission",
    errno.EROFS: "no-permission",
    errno.ENOENT: "not-found",
    errno.EMFILE: "too-few-open-files",
    errno.ENFILE: "too-few-open-files",
}


def reason_code_of(error: LogCompactionError | OSError) -> str:
    """Return the reason code of an error, the same in a task and in the driver."""
    of_class: str | None = getattr(error, "reason_code", None)
    if of_class is None:
        assert isinstance(error, OSError)
        return _OF_ERRNO.get(error.errno or 0, "input-output")
    return of_class


def shown(value: object) -> str:
    """A value that was not expected, as a message shows it: never all of a large one."""
    try:
        text = repr(value)
    except Exception:
        return f"a value of {type(value).__name__}"
    text = text.replace("\n", " ")
    return f"{text[:_SHOWN_CHARACTERS]}…" if len(text) > _SHOWN_CHARACTERS else text


def json_text(value: object, longest: int = 60) -> str:
    """Return a value as JSON writes it, and text in quotes, for a message about a file.

    longest: how many characters are shown.
    """
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= longest else f"{text[:longest]}…"
