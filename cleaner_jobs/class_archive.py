"""Where the class archive of Spark's Java is kept: classes parsed and checked once, then mapped.

An archive fits one Java and one set of jars only, so its name tells both; Java leaves aside one
that does not fit. Source: JEP 350, dynamic application class-data archives.
"""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from shutil import which

CACHE_FOLDER = "log-compactor"


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The user's folder for what can be made again."""
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".cache"
    return Path(base) / CACHE_FOLDER


def archive_path(environ: Mapping[str, str], spark_home: Path) -> Path:
    """The archive for the Java that JAVA_HOME or PATH name, whether it is there or not."""
    home = environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(which("java") or "java")
    identity = [_identity(java), _identity(spark_home / "jars")]
    name = sha256("\n".join(identity).encode()).hexdigest()[:16]
    return cache_dir(environ) / f"spark-{name}.jsa"


def _identity(path: Path) -> str:
    try:
        real = path.resolve(strict=True)
        return f"{real} {os.stat(real).st_mtime_ns}"
    except OSError:
        return str(path)
