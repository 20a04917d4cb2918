"""The sources of topics' settings, as `plan` and `run` find them: believed, or not, and why."""

from collections.abc import Iterator, Sequence

from compactor.diagnosis.checks import Check, fail, ok, warn, with_command
from compactor.errors import ConfigError
from compactor.host.printable import counted, printable
from compactor.log_dirs.brokers import by_broker
from compactor.planning.remedies import REMEDIES
from compactor.planning.remedy_commands import all_described
from compactor.reason_codes import Reason, ReasonCode
from compactor.settings.cluster_settings import (
    ClusterSettings,
    MetadataSource,
    read_cluster_settings,
)
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.log.cluster_metadata import METADATA_DIR
from storage.log.log_dir import LogDirListing, PartitionListing

_SUBJECT = "settings of topics"
_SHOWN = 3
_PASSED_OVER = (ReasonCode.TOPIC_DELETED, ReasonCode.TOPIC_ID_MISMATCH)


def settings_check(listing: LogDirListing, given: Sequence[str], now_ms: int) -> Check:
    """Look at what a broker's own files say of its topics. given: all log directories."""
    try:
        brokers = by_broker(given, LOCAL)
        own = next(each.log_dirs for each in brokers if listing.path in each.log_dirs)
        cluster = read_cluster_settings(own, MetadataSource(), LOCAL, now_ms)
    except (ConfigError, CorruptFileError) as error:
        return fail(_SUBJECT, str(error))
    if cluster is None or cluster.metadata is None:
        return warn(
            _SUBJECT,
            f"no {METADATA_DIR} here; by default it is in the first of log.dirs",
            with_command(
                "Give that directory too, or --metadata DIR. If there is none: --topic-configs "
                "FILE with what this prints:",
                all_described(),
            ),
        )
    notices = "; ".join(cluster.notices)
    doubts = [cluster.doubt] if cluster.doubt else []
    set_aside = doubts or [reason for _, reason in _set_aside(listing, cluster)]
    if set_aside:
        advice = f"Logs are set aside: {REMEDIES[set_aside[0].code].briefly}."
        return fail(_SUBJECT, notices if doubts else _named(listing, cluster), advice)
    if notices:
        return warn(_SUBJECT, notices, "A run says the same, and works.")
    return ok(_SUBJECT, f"in {cluster.metadata.path}, the cluster's metadata log")


def _named(listing: LogDirListing, cluster: ClusterSettings) -> str:
    found = [f"{printable(log.name)}: {why.text}" for log, why in _set_aside(listing, cluster)]
    more = f" and {counted(len(found) - _SHOWN, 'more log')}" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _set_aside(
    listing: LogDirListing, cluster: ClusterSettings
) -> Iterator[tuple[PartitionListing, Reason]]:
    """Yield each log that a source sets aside, and why."""
    for log in listing.partitions:
        try:
            why = cluster.why_of_another_topic(log)
        except CorruptFileError as error:
            why = Reason(ReasonCode.DAMAGED, str(error))
        except OSError as error:
            why = Reason(ReasonCode.UNREADABLE, f"{error.filename}: {error.strerror}")
        if why is not None and why.code not in _PASSED_OVER:
            yield log, why
