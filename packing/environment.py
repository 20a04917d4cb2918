"""An environment that runs wherever it is unpacked: Python, the packages, kernels, bytecode.

Kernels are compiled for a baseline, which a `.pth` file tells numba in every process of the
environment: what numba finds is then what it looks for, on whichever processor of the cluster.
"""

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cleaner_jobs.first_use import PACKED
from packing.installed import copy_packages
from packing.interpreter import copy_interpreter
from packing.wheel import unpack_wheel

# x86-64-v3: Intel since 2013 (Haswell), AMD since 2017 (Zen); all have an instruction for CRC-32C
# and fold CRC-32; none is asked for the wide registers that fold CRC-32C.
BASELINES = {
    "x86_64": (
        "x86-64-v3",
        "sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 crc32 cx16 f16c fma lzcnt movbe pclmul popcnt "
        "sahf xsave",
    ),
}
_LAUNCHER = """#!/bin/sh
# finds its Python beside itself, also through a link
self=$(readlink -f -- "$0") && exec "${self%/*}/python" -m compactor "$@"
"""
_WARM = "from cleaner_jobs.tasks.kernel_warm_up import warm; warm()"
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def make_environment(folder: Path, wheel: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """Make it in a folder that is not there yet; what it needs of a host."""
    machine = platform.machine()
    if machine not in BASELINES:
        raise SystemExit(f"no baseline of processors is known for {machine}")
    name, words = BASELINES[machine]
    features = ",".join(f"+{word}" for word in words.split())
    tell("copying Python and packages")
    packages = copy_interpreter(folder)
    facts = {
        "packages": copy_packages(wheel, packages),
        "python": platform.python_version(),
        "processor": f"{name} ({words})",
        "glibc": _glibc(folder),
    }
    unpack_wheel(wheel, packages)
    (packages / "log_compactor_baseline.pth").write_text(
        f"import os; os.environ.setdefault('NUMBA_CPU_NAME', {name!r}); "
        f"os.environ.setdefault('NUMBA_CPU_FEATURES', {features!r})\n"
    )
    launcher = folder / "bin" / "compactor"
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)
    tell(f"compiling kernels for {name}")
    _run(folder, "-c", _WARM)
    _compile_modules(folder)
    (packages / PACKED).write_text(json.dumps(facts, indent=2) + "\n")
    return facts


def _compile_modules(folder: Path) -> None:
    """Bytecode that holds whatever the times of files are, and wherever they stand.

    Kept of what was there: the kernels, which are no modules.
    """
    for stale in folder.rglob("__pycache__/*.pyc"):
        stale.unlink()
    words = ["-m", "compileall", "-q", "-s", str(folder), "-p", "", "-j", "0"]
    # `-x`: templates that are no Python
    words += ["--invalidation-mode", "unchecked-hash", "-x", "bad_|/lib2to3/", str(folder / "lib")]
    _run(folder, *words)


def _run(folder: Path, *words: str) -> None:
    """Its Python, which is to know nothing of this process's environment."""
    command = [str(folder / "bin" / "python"), "-B", *words]
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder / "no-home")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")


def _glibc(folder: Path) -> str:
    """The oldest C library that has all that the programs and libraries here ask for."""
    asked = {(0, 0)}
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink() and (".so" in file.name or "bin" in file.parts):
            found = _GLIBC.findall(file.read_bytes())
            asked |= {(int(major), int(minor)) for major, minor in found}
    return ".".join(map(str, max(asked)))
