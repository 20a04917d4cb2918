"""Changes of one log of a stopped broker: tried on an overlay, confirmed, then applied.

The lock of the log directory is held from the first read to the last write. `read_records` reads
the records to append from lines of JSON:

    {"key": "a", "value": null, "timestamp": 1700000000000, "headers": [["trace", "x"]]}

A key, value or header value is text, null, {"hex": …} or {"base64": …}. `value` is required: null
is a tombstone. Without `key` a record has none; without `timestamp` it gets the time of the append,
and with `"timestamp": null` it has none.
"""

import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from compactor.api import path_arguments
from compactor.api.path_arguments import in_place
from compactor.api.progress import note_changes
from compactor.api.round_context import RoundContext, read_round_context
from compactor.command_context import current_context
from compactor.errors import RefusedError, UsageError
from compactor.host.shell_commands import compactor
from compactor.log_dirs.directory_state import require_may_change
from compactor.log_dirs.locked_log_dirs import lock_log_dirs
from compactor.offline_log import append, truncate
from compactor.offline_log.log_location import (
    KnownOffsets,
    LogLocation,
    find_log,
    known_offsets,
    require_changeable,
)
from compactor.offline_log.open_log import LogSettings, change_log, log_settings, view_log
from compactor.offline_log.record_filter import NewRecord
from compactor.offline_log.truncate import Change, Outcome, apply_change
from compactor.reason_codes import Reason, ReasonCode
from compactor.recovery.log_dir_recovery import LoadRules, recover_log_dir
from compactor.settings.options import Natural
from compactor.settings.rules import (
    ChangeOptions,
)
from storage.arguments import PathArg
from storage.codecs.compression import Codec
from storage.file_names import LOG
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from storage.formats import clean_shutdown
from storage.formats.batch_header import NO_TIMESTAMP

ONLY_REPLICA = (
    "changes what one replica holds. Other replicas of this partition would not notice: they go "
    "on with the same offsets and leader epochs over other records, and which ones a client reads "
    "then depends on who leads. Say --only-replica if no other replica exists, or if all of them "
    "are rebuilt from this one (their directories of this partition are removed before their "
    "brokers start). Nothing was changed"
)
PARTLY = (
    "The change may have been made in part. The broker's mark of a clean shutdown was taken away "
    "before, so a broker that starts recovers the log; so does the same command with "
    "--recover-first, which then goes on."
)
RECOVERED = "Logs that the broker had not left in good order were recovered before."


_UNCHANGED = ". Nothing was changed"


DEFAULTS = ChangeOptions()


def log_roll(log_dir: PathArg, topic_partition: str, options: ChangeOptions = DEFAULTS) -> Outcome:
    """Begin a new segment, as a broker does when one is full. Raises as `make_change` does."""
    return make_change(log_dir, topic_partition, truncate.roll(), options)


def log_delete_records(
    log_dir: PathArg,
    topic_partition: str,
    before: Natural | None,
    options: ChangeOptions = DEFAULTS,
) -> Outcome:
    """Delete all records below an offset, as `kafka-delete-records` does.

    before: None: all. Raises as `make_change` does.
    """
    return make_change(log_dir, topic_partition, truncate.delete_records(before), options)


def log_truncate(
    log_dir: PathArg, topic_partition: str, to: Natural, options: ChangeOptions = DEFAULTS
) -> Outcome:
    """Delete all records from an offset on. Raises as `make_change` does."""
    return make_change(log_dir, topic_partition, truncate.truncate(to), options)


def log_append(
    log_dir: PathArg,
    topic_partition: str,
    records: Sequence[NewRecord],
    codec: str = "none",
    options: ChangeOptions = DEFAULTS,
) -> Outcome:
    """Append records as a leader would.

    codec: of the batches, none, gzip, snappy, lz4 or zstd; the topic's compression.type comes
    first. Raises as `make_change` does.
    """
    if codec.upper() not in Codec.__members__:
        raise UsageError("expected none, gzip, snappy, lz4 or zstd", "codec", codec)
    change = append.append(records, Codec[codec.upper()])
    outcome = make_change(log_dir, topic_partition, change, options)
    return outcome._replace(appended=append.appended_records(records, outcome.before.log_end))


def log_abort(
    log_dir: PathArg, topic_partition: str, producer_id: Natural, options: ChangeOptions = DEFAULTS
) -> Outcome:
    """Abort the open transaction of a producer in this log. Raises as `make_change` does."""
    return make_change(log_dir, topic_partition, append.abort(producer_id), options)


def make_change(
    log_dir: PathArg, topic_partition: str, change: Change, options: ChangeOptions
) -> Outcome:
    """Change one log; return its outcome.

    Raise UsageError, RefusedError, CorruptFileError and what the engine refuses (LogError) before
    anything is changed; LockLostError and OSError at any time: then `what_was_changed` says what
    had been changed.
    """
    if change.makes_replicas_differ and not options.only_replica:
        problem = f"{topic_partition}: {change.command} {ONLY_REPLICA}"
        raise RefusedError(problem, ReasonCode.OTHER_REPLICAS)
    (path,) = path_arguments.log_dirs([log_dir], to_write=not options.dry_run)
    require_may_change(path)  # a dry run takes no lock
    context = read_round_context(options.rules, [path])
    locks = lock_log_dirs([path], options.allowed_file_systems, options.recover_first)
    with nullcontext() if options.dry_run else locks:
        at = find_log(path, topic_partition, LOCAL)
        if change.needs_policy:
            _require_proven_policy(at, context)
        with _recovered(at, context, options):
            settings = log_settings(at.topic, context.config, context.as_of_ms)
            return _change(at, settings, change, options)


def _require_proven_policy(at: LogLocation, context: RoundContext) -> None:
    """Raise RefusedError where no source proves what its topic's policy is: a run sets it aside."""
    config = context.config
    found = config.why_policy_is_unproven(at.topic)
    advice = "--metadata DIR or --topic-configs FILE"
    disagreement = config.policy_disagreement(at.topic)
    if found is None and disagreement is not None:
        found = Reason(ReasonCode.SETTINGS_DISAGREE, disagreement)
        advice = "leave it out of that file, or correct the file"
    if found is not None:
        raise RefusedError(
            f"{at.name}: {found.text}. Whether its records may be deleted depends on its "
            f"cleanup.policy: {advice}{_UNCHANGED}",
            found.code,
        )


@contextmanager
def _recovered(at: LogLocation, context: RoundContext, options: ChangeOptions) -> Iterator[None]:
    """Recover the log directory first, where that is asked for, needed and confirmed.

    A later refusal does not say that nothing was changed.
    """
    if not options.recover_first or options.dry_run or clean_shutdown.exists(at.log_dir, LOCAL):
        yield
        return
    if not options.confirm_recovery(at.log_dir):
        problem = f"{at.log_dir}: the recovery was not confirmed{_UNCHANGED}"
        raise RefusedError(problem, ReasonCode.NOT_CONFIRMED)
    rules = LoadRules(context.config, context.as_of_ms)
    recovered = recover_log_dir(at.log_dir, rules, None, LOCAL)
    current_context().is_changed |= bool(recovered.logs or recovered.removed)
    try:
        for log in recovered.logs:
            if log.name == at.name and log.problem is not None:
                raise RefusedError(
                    f"{at.path}: cannot be recovered, and was left as it is: {log.problem}",
                    ReasonCode.DAMAGED,
                )
        yield
    except BaseException as error:
        if recovered.logs and isinstance(error, RefusedError):
            error.problem = error.problem.removesuffix(_UNCHANGED)
        if recovered.logs and not getattr(error, "__notes__", ()):
            note_changes(error, RECOVERED)
        raise


def _change(
    at: LogLocation, settings: LogSettings, change: Change, options: ChangeOptions
) -> Outcome:
    known = known_offsets(at, LOCAL)
    require_changeable(at, known, LOCAL)
    _require_sound(at, known, settings)
    act = partial(apply_change, change)
    overlay = OverlayFiles(LOCAL)
    try:
        outcome = change_log(at, known, settings, act, overlay)
    finally:
        overlay.close()
    if options.dry_run or not outcome.is_changed:
        return outcome
    if not options.confirm(outcome):
        problem = f"{at.name}: {change.command} was not confirmed{_UNCHANGED}"
        raise RefusedError(problem, ReasonCode.NOT_CONFIRMED)
    try:
        outcome = change_log(at, known, settings, act, LOCAL)
    except BaseException as error:
        note_changes(error, PARTLY)
        raise
    current_context().is_changed = True
    return outcome


def _require_sound(at: LogLocation, known: KnownOffsets, settings: LogSettings) -> None:
    """Raise RefusedError where a broker that opens the log would cut a part of it off."""
    with view_log(at, known, settings, LOCAL) as view:
        for path in view.hidden:
            assert path.endswith(LOG)
            raise RefusedError(
                f"{path}: damaged: a broker that opens this log would cut a part of it off. "
                f"{compactor('verify', at.log_dir, at.name)} says what is wrong with it; "
                f"{compactor('log read', at.log_dir, at.name)} shows what is before it. "
                "Nothing was changed",
                ReasonCode.DAMAGED,
            )


STANDARD_INPUT = "-"
_FIELDS = {"key", "value", "timestamp", "headers"}
_OF_READ = {"partition", "offset", "timestamp_type", "producer_id", "producer_epoch"}
_MAX_LONG = 2**63 - 1


def read_records(path: str) -> list[NewRecord]:
    """Read the records of a file, or of standard input (-). Empty lines are passed over.

    Raise UsageError, with the number of the line, at the first that is no record.
    """
    if path == STANDARD_INPUT:
        return list(_records(sys.stdin.buffer, path))
    try:
        with LOCAL.open_named(in_place("path", path)) as lines:
            return list(_records(lines, path))
    except OSError as error:
        raise UsageError(error.strerror or "", "path", path) from error


def _records(lines: Iterable[bytes], path: str) -> Iterator[NewRecord]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield record_of(line)
            except ValueError as error:
                raise UsageError(str(error), "path", f"{path}, line {number}") from error


def record_of(line: bytes | str) -> NewRecord:
    """Read one record. Raise ValueError, in words, where the line is none."""
    try:
        found: Any = json.loads(line)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("expected an object with key and value")
    unknown = sorted(found.keys() - _FIELDS - _OF_READ)
    if unknown:
        raise ValueError(f"no field is named {unknown[0]!r}")
    if "value" not in found:
        raise ValueError("has no value; a tombstone is written with null")
    return NewRecord(
        _bytes(found.get("key"), "key"),
        _bytes(found["value"], "value"),
        _timestamp(found["timestamp"]) if "timestamp" in found else None,
        tuple(_headers(found.get("headers"))),
    )


def _timestamp(value: object) -> int:
    if value is None:
        return NO_TIMESTAMP
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_LONG:
        raise ValueError(f"timestamp {value!r}: expected milliseconds since 1970")
    return value


def _headers(found: object) -> Iterator[tuple[bytes, bytes | None]]:
    if found is None:
        return
    if not isinstance(found, list):
        raise ValueError("headers: expected a list of pairs of a name and a value")
    for pair in found:
        if not (isinstance(pair, list) and len(pair) == 2):
            raise ValueError("headers: expected a list of pairs of a name and a value")
        name, value = (_bytes(part, "headers") for part in pair)
        if name is None:
            raise ValueError("headers: a header has a name")
        yield name, value


def _bytes(value: object, field: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if isinstance(text, str):
            try:
                if kind == "hex":
                    return bytes.fromhex(text)
                if kind == "base64":
                    return base64.b64decode(text, validate=True)
            except (ValueError, binascii.Error) as error:
                raise ValueError(f"{field}: not {kind}: {error}") from None
    raise ValueError(f'{field}: expected text, null, {{"hex": …}} or {{"base64": …}}')
