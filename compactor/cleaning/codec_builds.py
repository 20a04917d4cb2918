"""Where what is compressed anew is not byte for byte the chosen Kafka's (V-5)."""

from collections.abc import Iterable

from compactor.cleaning.stage_values import LogResult
from compactor.errors import RefusedError
from compactor.host.printable import counted
from compactor.reason_codes import ReasonCode
from storage.codecs.compression import build_notes
from storage.kafka_versions import CodecBuilds


def other_bytes(result: LogResult) -> tuple[str, ...]:
    """Say which codecs of a log have another build than that of its Kafka, and which.

    The builds are those of whoever rewrote it, on a cluster the executors; as long as nobody has,
    of whoever read it.
    """
    codecs, rebuilt = 0, [piece for piece in result.rewritten if piece.batches_rebuilt]
    for part in result.parts:
        codecs |= part.codecs
    workers = {CodecBuilds(*each.builds) for each in rebuilt or result.parts if each.builds}
    notes = (
        note
        for builds in sorted(workers)
        for note in build_notes(result.plan.kafka, codecs, builds)
    )
    return tuple(dict.fromkeys(notes))


def require_exact_bytes(results: Iterable[LogResult], is_wanted: bool) -> None:
    """Raise RefusedError, if wanted, where the bytes of a log could be others than its Kafka's.

    Asked when all records are read, and again when all is rewritten, before the first swap: another
    executor may have done that.
    """
    found = {
        result.plan.name: why
        for result in results
        if result.problem is None
        for why in other_bytes(result)
    }
    if not found or not is_wanted:
        return
    name, why = next(iter(found.items()))
    raise RefusedError(
        f"--exact-bytes: {counted(len(found), 'log')} could come out in other bytes, {name} for "
        f"one: {why}",
        ReasonCode.OTHER_CODEC,
        remedy="Install the build that is named, choose another Kafka (--kafka), or leave out "
        "--exact-bytes: the records are the same. Nothing was changed",
    )
