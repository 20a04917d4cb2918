"""Where what is compressed anew is not byte for byte the chosen Kafka's (V-5)."""

from collections.abc import Iterable, Iterator, Sequence

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.task_values import Part
from compactor.cleaning.stage_values import LogResult
from compactor.errors import RefusedError
from compactor.host.printable import counted
from compactor.reason_codes import ReasonCode
from storage.codecs.installed import differing_builds


def other_bytes(plan: LogPlan, parts: Sequence[Part]) -> Iterator[str]:
    """Say which codecs of a log have another build than that of its Kafka, and which."""
    codecs = 0
    for part in parts:
        codecs |= part.codecs
    for codec, why in differing_builds(plan.kafka).items():
        if codecs & 1 << codec:
            yield f"{codec.name.lower()} of another build: {why}"


def require_exact_bytes(results: Iterable[LogResult], is_wanted: bool) -> None:
    """Raise RefusedError, if wanted, where the bytes of a log could be others than its Kafka's.

    Its records are read by then, and nothing of any log is rewritten yet.
    """
    found = {
        result.plan.name: why
        for result in results
        if result.problem is None
        for why in other_bytes(result.plan, result.parts)
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
