"""Shell completion: the script for a shell, and what may stand for a directory or a log.

The library asks by variables of the environment, which its scripts set; it knows commands and
options by itself. Nothing but names of directories is read.
"""

import os
from collections.abc import Mapping
from typing import Any

import typer

from compactor.host.output import print_line
from storage.file_names import parse_partition_dir
from storage.files.filesystem import is_directory

VARIABLE = "_COMPACTOR_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def begin_if_asked(environ: Mapping[str, str]) -> None:
    """Let the library know the shells, if one of them asks."""
    if VARIABLE in environ:
        from typer._completion_classes import completion_init  # takes a moment, for nothing else

        completion_init()


def show_script(shell: str | None) -> None:
    """Print what a shell has to load. BadParameter for a shell that is not known."""
    if shell is None:
        return
    if shell not in SHELLS:
        expected = ", ".join(SHELLS)
        raise typer.BadParameter(f"{shell!r} is not one of {expected}")
    from typer._completion_shared import get_completion_script  # likewise

    asked = {"prog_name": "compactor", "complete_var": VARIABLE, "shell": shell}
    print_line(get_completion_script(**asked))
    raise typer.Exit()


def directories(incomplete: str) -> list[str]:
    """The directories that begin like that, each with a slash behind it."""
    folder, begin = os.path.split(incomplete)
    return sorted(
        os.path.join(folder, name) + os.sep
        for name in _names(folder or os.curdir)
        if name.startswith(begin) and is_directory(os.path.join(folder, name))
    )


def directories_or_logs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Logs too, once a log directory stands before: it is not known which of the two it is."""
    return logs(ctx, incomplete) + directories(incomplete)


def logs(ctx: typer.Context, incomplete: str) -> list[str]:
    """The logs of the directories that were given."""
    return sorted({name for name in _given_names(ctx) if name.startswith(incomplete)})


def directories_or_topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics too, once a log directory stands before."""
    keys = map(parse_partition_dir, _given_names(ctx))
    topics = {key[0] for key in keys if key is not None and key[0].startswith(incomplete)}
    return sorted(topics) + directories(incomplete)


def _given_names(ctx: typer.Context) -> list[str]:
    values: list[Any] = []
    for value in ctx.params.values():
        values += value if isinstance(value, list | tuple) else [value]
    places = [each for each in values if isinstance(each, str) and is_directory(each)]
    return [name for place in places for name in _names(place) if parse_partition_dir(name)]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
