"""Reads edited files, and counts what ends in an error that nobody raised on purpose."""

import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from storage.errors import LogCompactionError
from storage.log.errors import LogError
from tests.campaign import Case, Tried
from tests.read_back.edits import edited
from tests.read_back.targets import Target

# how Python writes what JSON writes as null, true, {"a": 1} and ["a"], and its own errors
PYTHON = re.compile(r"\b(None|True|False)\b|\{'|\['|\bb'|\b\w+Error\(|object at 0x|<class")
_SLOW = {"report as shown": 10}  # it has one file where others have so many


def edited_files(kinds: Mapping[str, Target], count: int, seed: int, root: Path) -> Iterator[Case]:
    """Yield a case for each file. Those of a kind are drawn from the seed and the kind's name."""
    shares = {name: 1 / _SLOW.get(name, 1) for name in kinds}
    for name, target in kinds.items():
        of_kind = max(1, round(count * shares[name] / sum(shares.values())))
        for number in range(of_kind):
            chance = random.Random(f"{seed} {name} {number}")
            yield Case(f"file {number}", partial(_tried, target, chance, root), name)


def _tried(target: Target, chance: random.Random, root: Path) -> Tried:
    problem = _problem(target, edited(target.sound, chance), root)
    return Tried([] if problem is None else [problem])


def _problem(target: Target, data: bytes, root: Path) -> str | None:
    folder = Path(tempfile.mkdtemp(dir=root))
    path = folder / "edited.json"
    path.write_bytes(data)
    try:
        target.read(path)
    except (LogCompactionError, LogError) as error:
        found = PYTHON.search(str(error).replace(str(path), ""))
        return f"Python's own words, {found[0]!r}: {error}"[:300] if found else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    finally:
        shutil.rmtree(folder)
    return None
