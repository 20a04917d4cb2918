"""`verify` and `verify_against`: is a log directory sound; do readers get what they got before.

Both only read, and take no lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor.api import path_arguments
from compactor.api.arguments import Paths
from compactor.api.progress import Listener, OnProgress
from compactor.copying.manifest import check
from compactor.copying.manifest import read as read_manifest
from compactor.errors import UsageError
from compactor.host.clock import now_ms
from compactor.host.progress import AGAINST_STAGE, MANIFEST_STAGE, running_total
from compactor.jobs.engine_choice import require_possible_engine
from compactor.jobs.mapping import MapSettings
from compactor.log_checks.findings import Finding
from compactor.log_dirs.directory_state import require_whole
from compactor.settings.config import load_configs
from compactor.settings.rules import ANY_ENGINE, TaskOptions
from compactor.verification import verify as verifier
from compactor.verification import verify_against as comparer
from compactor.verification.evidence import CleaningClock
from compactor.verification.run_reports import read_run_reports
from compactor.verification.verify import Verification
from compactor.verification.verify_against import Comparison
from storage.arguments import PathArg
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import meta_properties
from storage.formats.meta_properties import META_PROPERTIES


def verify(
    log_dirs: Paths, partitions: Sequence[str] = (), on_progress: OnProgress | None = None
) -> Verification:
    """Check everything in log directories, or in the partitions of them that are named.

    What is wrong becomes a finding, not an error. Raise UsageError if no directory has such a
    partition.
    """
    paths = path_arguments.log_dirs(log_dirs, to_write=False)
    return verifier.verify(paths, dict.fromkeys(partitions), Listener(on_progress))


def verify_manifest(log_dir: PathArg, on_progress: OnProgress | None = None) -> list[Finding]:
    """Check the files of a copy, made by a run with `output`, against its manifest.

    Raise UsageError where the manifest is missing or damaged.
    """
    (path,) = path_arguments.log_dirs([log_dir], to_write=False)
    try:
        manifest = read_manifest(path, LOCAL)
    except FileNotFoundError as error:
        raise UsageError(f"there is no {error.filename}", "manifest") from error
    except CorruptFileError as error:
        raise UsageError(str(error), "manifest") from error
    listener = Listener(on_progress)
    listener.stage(MANIFEST_STAGE, sum(mark.size_bytes for mark in manifest.files))
    return list(check(path, manifest, running_total(listener.advance), LOCAL))


def known_of_cleanings(
    run_reports: Sequence[str] = (),
    topic_configs: str | Mapping[str, Mapping[str, Any]] | None = None,
) -> CleaningClock:
    """Read what was done to logs since a copy was made, for `verify_against`.

    run_reports: files of `--report` of the runs, and of `undo` and `log …`, in any order.
    topic_configs: settings of topics, a file or its contents. Raise UsageError, ConfigError.
    """
    present_ms = now_ms()
    known = read_run_reports(run_reports)
    config = None
    if topic_configs is not None:
        (config,) = load_configs(None, topic_configs, {}, [None])
    evidence = replace(
        known.evidence, config=config, now_ms=present_ms if known.evidence.has_reports else None
    )
    return (known.clock or CleaningClock(present_ms))._replace(evidence=evidence)


def verify_against(
    log_dir: PathArg,
    before: PathArg,
    topic_partition: str | None = None,
    clock: CleaningClock | None = None,
    on_progress: OnProgress | None = None,
    options: TaskOptions = ANY_ENGINE,
) -> Comparison:
    """Compare a log directory with a copy from before a cleaning, record by record.

    clock: what is known of the clock of the cleaning, see `known_of_cleanings`; None: only that
    it is not later than now. options: what compares the partitions.
    Raise UsageError if a directory or the partition does not exist, or the copy is one of another
    log directory, RefusedError where the copy was never finished, CleaningFailedError where what
    compares them fails.
    """
    require_possible_engine(options)
    (after,) = path_arguments.log_dirs([log_dir], to_write=False)
    (copy,) = path_arguments.other_log_dirs([before], to_write=False, name="before")
    require_whole(copy)
    path_arguments.require_another("before", before, after)
    _require_a_pair(after, copy, topic_partition)
    known = CleaningClock(now_ms()) if clock is None else clock
    settings = MapSettings(
        engine=options,
        work_dir=path_arguments.work_dir(options.work_dir, (after, copy)),
        stage=AGAINST_STAGE,
        now_ms=now_ms(),
    )
    return comparer.verify_against(
        after, copy, topic_partition, known, Listener(on_progress), settings
    )


def _require_a_pair(after: str, before: str, topic_partition: str | None) -> None:
    """Raise UsageError where meta.properties shows that one is no copy of the other.

    One log that is named may have moved between the directories of a broker. A damaged or missing
    file shows nothing.
    """
    try:
        now, was = (meta_properties.read(path, LOCAL) for path in (after, before))
    except (OSError, CorruptFileError):
        return
    shown = [("cluster.id", was.cluster_id, now.cluster_id), ("node.id", was.node_id, now.node_id)]
    if topic_partition is None:
        shown.append(("directory.id", was.directory_id, now.directory_id))
    for name, of_copy, own in shown:
        if None not in (of_copy, own) and of_copy != own:
            raise UsageError(
                f"is no copy of {after}: its {name} is {of_copy}, and that of {after} is {own} "
                f"({META_PROPERTIES}); give the copy of this very directory",
                "before",
                before,
            )
