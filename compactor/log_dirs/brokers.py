"""Tell log directories apart by the broker that they belong to: `node.id` in `meta.properties`.

Brokers of two clusters may have the same number, so the cluster counts, too. A directory that does
not say whose it is belongs to the one broker that others belong to. Source: log-format F-15.3.
"""

from collections.abc import Sequence
from typing import NamedTuple

from compactor.errors import ConfigError
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.formats import meta_properties


class BrokerLogDirs(NamedTuple):
    """The log directories of one broker, in the order of the arguments."""

    cluster_id: str | None  # None: not known, as the next
    node_id: int | None
    log_dirs: tuple[str, ...]

    @property
    def name(self) -> str:
        """For people."""
        cluster = "" if self.cluster_id is None else f" of cluster {self.cluster_id}"
        return f"broker {self.node_id}{cluster}"


def by_broker(log_dirs: Sequence[str], files: Files) -> tuple[BrokerLogDirs, ...]:
    """Put the directories of each broker together, the brokers in the order of their first one.

    One whose meta.properties is damaged does not say whose it is. Raise ConfigError where several
    brokers are known and a directory does not say it.
    """
    known = {path: _identity(path, files) for path in log_dirs}
    clusters: dict[int, set[str]] = {}
    for cluster_id, node_id in known.values():
        if node_id is not None and cluster_id is not None:
            clusters.setdefault(node_id, set()).add(cluster_id)
    found: dict[tuple[str | None, int], list[str]] = {}
    unknown = []
    for path, (cluster_id, node_id) in known.items():
        if node_id is None:
            unknown.append(path)
            continue
        if cluster_id is None and len(clusters.get(node_id, ())) == 1:
            (cluster_id,) = clusters[node_id]  # an older broker did not write it everywhere
        found.setdefault((cluster_id, node_id), []).append(path)
    if len(found) > 1 and unknown:
        raise ConfigError(
            f"does not say which broker it belongs to ({meta_properties.META_PROPERTIES}), and log "
            "directories of several were given: give those of one broker",
            "log_dirs",
            unknown[0],
        )
    if len(found) <= 1:
        cluster_id, own = next(iter(found), (None, None))
        return (BrokerLogDirs(cluster_id, own, tuple(log_dirs)),)
    return tuple(BrokerLogDirs(*broker, tuple(paths)) for broker, paths in found.items())


def brokers_of(log_dirs: Sequence[str], files: Files) -> list[tuple[str, ...]]:
    """Return the log directories of each broker; all together where it cannot be known."""
    try:
        return [broker.log_dirs for broker in by_broker(log_dirs, files)]
    except (ConfigError, CorruptFileError, OSError):  # a directory does not say whose it is
        return [tuple(log_dirs)]


def _identity(log_dir: str, files: Files) -> tuple[str | None, int | None]:
    try:
        found = meta_properties.read(log_dir, files)
    except (FileNotFoundError, CorruptFileError):
        return None, None
    return found.cluster_id, found.node_id
