"""The user's cache: files that can be made again, each named after what it depends on."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256

from storage.files.local import LOCAL
from storage.user_home import home_of

CACHE_FOLDER = "log-compactor"


def cache_dir(environ: Mapping[str, str]) -> str:
    """Return the user's folder for what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or os.path.join(home_of(environ), ".cache")
    return os.path.join(base, CACHE_FOLDER)


def kept_file(
    environ: Mapping[str, str], kind: str, owner: str, state: Sequence[str], suffix: str = ""
) -> str:
    """Name a file of the cache after the folder that it belongs to and what it depends on."""
    names = (sha256(text.encode()).hexdigest()[:12] for text in (owner, "\n".join(state)))
    return os.path.join(cache_dir(environ), f"{kind}-{'-'.join(names)}{suffix}")


def is_kept(path: str) -> bool:
    """Return whether a file of the cache is there; not if the cache cannot be read."""
    try:
        return LOCAL.exists(path)
    except OSError:
        return False


def forget(path: str) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        LOCAL.remove(path)


def forget_older(kept: str) -> None:
    """Remove what the cache has of the same folder in an earlier state."""
    directory, name = os.path.split(kept)
    owner = name.rpartition("-")[0]
    _, names = LOCAL.list_names(directory)
    for other in names:
        if other != name and other.startswith(f"{owner}-"):
            forget(os.path.join(directory, other))


def text_of(path: str) -> str | None:
    """Return the text of a file of this machine, be it by a link; None where it cannot be read."""
    try:
        with LOCAL.open_named(path) as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return None


@contextmanager
def temporary_directory(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Make a directory for this user alone, and remove it at the end."""
    path = LOCAL.make_temporary_directory(prefix, parent)
    try:
        yield path
    finally:
        LOCAL.discard_directory(path)
