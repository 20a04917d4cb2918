"""The version of this project, from the metadata of the installed package."""

from functools import cache

DISTRIBUTION = "log-compactor"


@cache
def version() -> str:
    """`unknown` where the source is run without having been installed."""
    from importlib import metadata  # only here: most commands do not say it

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
