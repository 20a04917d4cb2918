"""Learn of the broker of one log directory from what is in it and in the directories beside it.

For commands that take one directory and do not know where the metadata log is.
"""

import os
from collections.abc import Iterator, Sequence
from uuid import UUID

from compactor.settings.cluster_settings import (
    ClusterSettings,
    MetadataSource,
    directory_id_of,
    identity_in,
    only_one,
    read_cluster_settings,
    registered_log_dirs,
)
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import decode_uuid
from storage.log.cluster_metadata import METADATA_DIR, read_cluster_metadata


def settings_of_broker(
    log_dirs: Sequence[str], files: Files
) -> tuple[ClusterSettings | None, tuple[str, ...]]:
    """Read the settings of the broker of the first log directory, and find its other directories.

    This is for a command without a path of a metadata log. The other directories are looked for
    among the arguments, and beside them. A metadata log is the broker's only if the broker is
    registered in it with this directory, and a directory beside is only if it is registered in it,
    too: one that was formatted again keeps its node and its cluster, and not its id.

    Raises as `read_cluster_settings` does.
    """
    own = identity_in(log_dirs[0], files)
    if own is None or own.node_id is None or own.cluster_id is None:
        return read_cluster_settings(log_dirs[:1], MetadataSource(), files), ()
    metadata = os.path.join(log_dirs[0], METADATA_DIR)
    source = MetadataSource(metadata if files.exists(metadata) else None)
    found = {LOCAL.resolve(log_dirs[0]): log_dirs[0]}
    for path in (*log_dirs[1:], *directories_beside(log_dirs, files)):
        try:
            other = identity_in(path, files)
        except (CorruptFileError, OSError):  # it does not say whose it is
            continue
        if other is None or (other.node_id, other.cluster_id) != (own.node_id, own.cluster_id):
            continue
        is_copy = other.directory_id == own.directory_id and other.directory_id is not None
        if not (is_copy and source.metadata):  # else the copy may be of another time
            found.setdefault(LOCAL.resolve(path), path)
    paths = tuple(found.values())
    if source.metadata is None:
        source = MetadataSource(_metadata_dir_of(own, paths, files))
    cluster = read_cluster_settings(log_dirs[:1], source, files)
    if cluster is None:
        return None, paths[1:]
    registered = registered_log_dirs(cluster)
    given = {LOCAL.resolve(path) for path in log_dirs}
    others = (
        path
        for path in paths[1:]
        if LOCAL.resolve(path) in given or _may_be_of(registered, path, cluster, files)
    )
    return cluster, tuple(others)


def directories_beside(log_dirs: Sequence[str], files: Files) -> Iterator[str]:
    """Yield the directories beside these, and these."""
    for parent in dict.fromkeys(os.path.dirname(LOCAL.resolve(path)) for path in log_dirs):
        try:
            directories, _ = files.list_names(parent)
        except OSError:  # a parent that only the broker's directories may be reached through
            continue
        yield from (os.path.join(parent, name) for name in sorted(directories))


def _may_be_of(
    registered: Sequence[UUID], path: str, cluster: ClusterSettings, files: Files
) -> bool:
    """Say whether a directory of the same node may be one of today's, by its registration."""
    if not registered:
        return not cluster.is_contradicted
    id_ = directory_id_of(path, files)
    return id_ is None or id_ in registered


def _metadata_dir_of(own: MetaProperties, log_dirs: Sequence[str], files: Files) -> str | None:
    """Find the metadata log that has the broker with this directory, or the only one."""
    places = [os.path.join(path, METADATA_DIR) for path in log_dirs]
    places = [place for place in places if files.exists(place)]
    if len(places) > 1:
        places = [place for place in places if _has_directory(place, own, files)] or places
    return only_one(places)


def _has_directory(metadata_dir: str, own: MetaProperties, files: Files) -> bool:
    try:
        registered = read_cluster_metadata(metadata_dir, files).broker_log_dirs
    except (CorruptFileError, UnsupportedFormatError, OSError):  # whoever takes it says so
        return False
    own_id = decode_uuid(own.directory_id) if own.directory_id else None
    return own.node_id is not None and own_id in registered.get(own.node_id, ())
