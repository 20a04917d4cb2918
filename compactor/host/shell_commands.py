"""Commands that messages print: made in this module alone, so that each can be pasted into a shell.

A command is made of words, never of text: every word is quoted, `--` stands before operands where
one begins with a dash, and `--recover-first` where a log directory needs it now. What somebody has
typed for the command that prints another one, and what the other one takes, is carried over.

`tests/printed_commands` finds every use, parses every command with the real parser, and runs them.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from compactor.host.printable import shell_word
from storage.files.local import LOCAL
from storage.formats import clean_shutdown
from storage.log.log_dir_lock import LogDirLockedError, require_free

PROGRAM = "compactor"
HOST = "HOST:9092"  # stands for what whoever pastes has to write in its place
_RECOVER_FIRST, _END = "--recover-first", "--"
_CHANGES_CLEAN_LOGS = (  # commands that refuse an unclean log directory, and take --recover-first
    *("run", "log roll", "log delete-records", "log truncate", "log append", "log abort"),
)
_OF_SETTINGS = (
    *("--topic-configs", "--trust-topic-configs", "--config", "--set", "--metadata"),
    *("--no-metadata", "--server-properties", "--allow-file-system"),
)
_OF_ROUNDS = ("--as-of", "--any-clock", "--assume-fully-replicated", "--all-log-dirs-given")
_ROUNDS = ("plan", "run", "explain")
_OF_OUTPUT = (
    *("--format", "--report", "--metrics", "--quiet", "--debug", "--log-format", "--fail-if"),
)
_REPEATED = ("--set", "--allow-file-system", "--trust-topic-configs", "--executor-path", "--output")


class TypedOptions(NamedTuple):
    """What somebody has typed: options with their values, and what each command would take."""

    options: tuple[tuple[str, str | None], ...]  # in their order; None: without a value
    takes: Callable[[str], Collection[str]]


_typed_options: ContextVar[list[TypedOptions] | None] = ContextVar(
    "given", default=None
)  # one or none


@contextmanager
def typed_options_forgotten() -> Iterator[None]:
    """Forget at the end what is noted meanwhile; without it nothing is noted."""
    token = _typed_options.set([])
    try:
        yield
    finally:
        _typed_options.reset(token)


def note_typed_options(typed: TypedOptions) -> None:
    """Note what was typed for the command that is about to begin."""
    noted = _typed_options.get()
    if noted is not None:
        noted[:] = [typed]


def named(command: str) -> str:
    """The name of a command, for a sentence about it: nothing to be pasted."""
    return f"{PROGRAM} {command}"


def compactor(command: str, *operands: str, options: Sequence[str] = ()) -> str:
    """Return a command of this program, with what was typed about settings and clock.

    Args:
        command: as in the help: `verify`, `log roll`.
        operands: log directories and names, in their order.
        options: its own; those that were typed do not stand beside one of the same name.
    """
    about = (*_OF_SETTINGS, *_OF_ROUNDS) if command in _ROUNDS else _OF_SETTINGS
    return _spelled(_words(command, operands, options, lambda name: name in about))


def about_file(command: str, path: str) -> str:
    """Return a command about the log that a file belongs to."""
    partition = os.path.dirname(path)
    return compactor(command, os.path.dirname(partition), os.path.basename(partition))


def with_typed_options(command: str, *operands: str, options: Sequence[str] = ()) -> str:
    """Return a command with all typed options that it takes, except for those of its output."""
    return _spelled(_words(command, operands, options, lambda name: name not in _OF_OUTPUT))


def with_plan(path: str, log_dirs: Sequence[str]) -> str:
    """Return the run of a saved plan, which says nearly all itself. log_dirs: of the plan."""
    is_unclean = any(map(_unclean, log_dirs))
    own = [*valued("--plan", path), *([_RECOVER_FIRST] if is_unclean else ())]
    return _spelled(_words("run", (), own, lambda name: name == "--allow-file-system"))


def as_user(name: str | None, uid: int, gid: int, command: str, *operands: str) -> str:
    """Return a command of this program for another user. name: None where no name is known.

    sudo takes no number that the system does not know.
    """
    numbers = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
    switch = ("sudo", "-u", name) if name is not None else ("setpriv", *numbers)
    return _spelled((*switch, *_words(command, operands, (), lambda n: n in _OF_SETTINGS)))


def owner_of(model: str, path: str, *options: str) -> str:
    """Return the shell command that gives path the owner of model."""
    return _spelled(("sudo", "chown", *options, f"--reference={model}", path))


def tool(*words: str, into: str | None = None) -> str:
    """Return a command of another program. into: the file that gets what it prints."""
    return _spelled(words) + (f" > {shell_word(into)}" if into is not None else "")


def in_turn(*commands: str) -> str:
    """Return commands of which each is done if the one before it went well."""
    return " && ".join(commands)


def kafka(program: str, *words: str, into: str | None = None) -> str:
    """Return a command of Kafka's own: `kafka-topics.sh` and its like."""
    return tool(f"kafka-{program}.sh", "--bootstrap-server", HOST, *words, into=into)


def option(name: str, value: str) -> str:
    """Return an option with its value, for a sentence."""
    return _spelled(valued(name, value))


def valued(name: str, value: str) -> tuple[str, ...]:
    """Return the words of an option: one, where its value begins with a dash."""
    return (f"{name}={value}",) if value.startswith("-") else (name, value)


def _spelled(words: Sequence[str]) -> str:
    return " ".join(shell_word(word) for word in words)


def _words(
    command: str, operands: Sequence[str], options: Sequence[str], is_wanted: Callable[[str], bool]
) -> tuple[str, ...]:
    own = [*options]
    if (
        _RECOVER_FIRST not in own
        and command in _CHANGES_CLEAN_LOGS
        and any(map(_unclean, operands))
    ):
        own.append(_RECOVER_FIRST)
    for given in _typed_options.get() or ():
        takes = given.takes(command)
        if command == "verify" and "--against" not in own:  # only a comparison takes settings
            takes = [name for name in takes if name not in _OF_SETTINGS]
        for name, value in given.options:
            beside_own = name in own and name not in _REPEATED
            if name in takes and is_wanted(name) and name != _RECOVER_FIRST and not beside_own:
                own += (name,) if value is None else valued(name, value)
    if any(operand.startswith("-") for operand in operands):
        return (PROGRAM, *command.split(), *own, _END, *operands)
    return (PROGRAM, *command.split(), *operands, *own)


def _unclean(path: str) -> bool:
    """Return whether a log directory is idle and was not shut down cleanly."""
    if (
        not os.path.isabs(path)
        or not LOCAL.is_directory(path)
        or clean_shutdown.exists(path, LOCAL)
    ):
        return False
    try:
        require_free(path)
    except (LogDirLockedError, OSError):
        return False
    return True
