"""The version of this project, from the metadata of the installed package."""

from importlib import metadata

DISTRIBUTION = "log-compactor"


def version() -> str:
    """`unknown` where the source is run without having been installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
