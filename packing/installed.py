"""The packages that the project needs when it runs, copied as they are installed here.

They came here by the lock file, each checked by its hash, and the tests ran with them. Spark's own
are left out: a cluster brings its Spark, and what goes with it.
"""

import email
import re
import shutil
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

OF_SPARK = frozenset({"pyspark", "py4j"})
# Of no use when the project runs, and half of what there is.
LEFT_OUT = re.compile(
    r"(^|/)__pycache__/|\.pyi$|\.pxd$|\.h$|\.hpp$|\.a$|^(numba|llvmlite|pyarrow)/(.*/)?tests/"
    r"|^numpy/(?!_core/).*/tests/|^pyarrow/(include|src)/"
    r"|(^|/)(direct_url\.json|INSTALLER|REQUESTED|RECORD|uv_cache\.json)$"
)


def copy_packages(wheel: Path, to: Path) -> dict[str, str]:
    """Copy all that the wheel requires, at whatever remove; their versions."""
    versions = {}
    for package in sorted(_required(_requirements(wheel)), key=lambda package: package.name):
        for file in package.files or ():
            name = str(file)
            if name.startswith("..") or LEFT_OUT.search(name):  # `..`: a script of it
                continue
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), target)
            target.chmod(0o755 if ".so" in file.name else 0o644)
        versions[package.name] = package.version
    return versions


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    return email.message_from_string(metadata).get_all("Requires-Dist", [])


def _required(lines: list[str]) -> Iterator[Distribution]:
    """What is to be copied, each once."""
    met, left = set(OF_SPARK), [lines]
    while left:
        for line in left.pop():
            requirement = Requirement(line)
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            marker = requirement.marker
            if name in met or (marker is not None and not marker.evaluate({"extra": ""})):
                continue
            met.add(name)
            found = distribution(name)
            left.append(found.requires or [])
            yield found
