"""python -m packing [--output DIR] [--level N]: what a cluster needs of the project."""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from packing.archive import pack
from packing.environment import make_environment
from packing.wheel import build_wheel


def main() -> int:
    """Leave the wheel and the archive in the output directory, and say what they need."""
    parser = argparse.ArgumentParser(prog="make dist", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("dist"))
    parser.add_argument("--level", type=int, default=6, help="of compression, 1 to 9")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(given.output)
    _tell(f"{wheel}: {wheel.stat().st_size:,} bytes")
    with tempfile.TemporaryDirectory(prefix="packing-") as folder:
        environment = Path(folder) / "environment"
        facts = make_environment(environment, wheel, _tell)
        version = "".join(platform.python_version_tuple()[:2])
        release = "-".join(wheel.name.split("-")[:2])
        name = f"{release}-py{version}-{sys.platform}-{platform.machine()}.tar.gz"
        archive = pack(environment, given.output / name, given.level)
    _tell(f"{archive}: {archive.stat().st_size:,} bytes")
    _tell(
        f"it needs Linux with glibc {facts['glibc']} or newer, a processor with all of "
        f"{facts['processor']}, and Java and Spark of the cluster"
    )
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
