"""Commands that messages print: parsed by the real parser, and collected while something runs."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from compactor.command_line.command import Request
from compactor.command_line.commands import app
from compactor.command_line.parser import parse
from compactor.host import shell_commands
from compactor.host.shell_commands import typed_options_forgotten

# by program, and by its own command where it has one: the options that Kafka 4.3.1 takes of those
# that can be printed here (its tools' --help)
KAFKAS = {
    "kafka-configs.sh": (
        *("--bootstrap-server", "--alter", "--describe", "--all", "--entity-type"),
        *("--entity-name", "--add-config"),
    ),
    "kafka-topics.sh": ("--bootstrap-server", "--describe", "--under-replicated-partitions"),
    "kafka-reassign-partitions.sh": (
        *("--bootstrap-server", "--reassignment-json-file", "--verify", "--cancel"),
    ),
    "kafka-transactions.sh": ("--bootstrap-server",),
    "kafka-transactions.sh find-hanging": ("--broker-id", "--topic", "--partition"),
    "kafka-transactions.sh abort": ("--topic", "--partition", "--start-offset"),
}
_OTHERS = ("rm", "mv", "mount", "timedatectl", "truncate", "mkdir", "printf")


def require_right(words: Sequence[str]) -> None:
    """Raise AssertionError for a command that its program would not take."""
    program, *rest = words
    if tuple(words[:2]) == ("sudo", "chown"):
        assert rest[-2].startswith("--reference=/"), words
    elif program == "sudo":
        assert rest[0] == "-u" and not rest[1].isdigit(), words
        require_right(rest[2:])
    elif program == "setpriv":
        assert [each.partition("=")[0] for each in rest[:3]] == [
            *("--reuid", "--regid", "--clear-groups"),
        ]
        require_right(rest[3:])
    elif program == shell_commands.PROGRAM:
        _require_parsed(rest)
    elif program in KAFKAS:
        _require_kafkas(program, rest)
    else:
        assert program in _OTHERS, f"what takes {words}?"


def _require_parsed(words: Sequence[str]) -> None:
    with typed_options_forgotten():
        try:
            found = parse(app, words)
        except Exception as error:  # of the library's own kinds
            raise AssertionError(f"compactor {shlex.join(words)}: {error}") from error
    assert isinstance(found, Request), words


def _require_kafkas(program: str, words: Sequence[str]) -> None:
    known, of = KAFKAS[program], program
    for word in words:
        if f"{program} {word}" in KAFKAS:
            of = f"{program} {word}"
            known = KAFKAS[of]
        elif word.startswith("--"):
            assert word.partition("=")[0] in known, f"{of} takes no {word}"


@contextmanager
def collected() -> Iterator[list[tuple[str, ...]]]:
    """The words of every command that is printed meanwhile; each is required to be right."""
    found: list[tuple[str, ...]] = []
    spelled = shell_commands._spelled

    def noted(words: Sequence[str]) -> str:
        if not words[0].startswith("--"):  # an option for a sentence
            require_right(words)
            found.append(tuple(words))
        return spelled(words)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(shell_commands, "_spelled", noted)
        yield found
