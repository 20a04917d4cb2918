"""A metadata log that proves nothing: what a start makes of the logs beside it. Pure.

A broker that is its only controller goes on with what it can read of it, which may be nothing, and
each log that this does not name is a stray one. Where the quorum has other voters, it asks them.
Source: Kafka, KafkaRaftLog, QuorumController, LogManager.isStrayKraftReplica; spec F-16.4.
"""

import json
from collections.abc import Iterator, Sequence

from compactor.broker_start.values import StartOutcome, StartProblem
from compactor.reason_codes import ReasonCode
from compactor.settings_sources import Finding, State

_LOSING = (State.EMPTY, State.NEVER_USED, State.DAMAGED)


def problems_of_metadata(
    findings: Sequence[Finding], quorum: bytes | None, node_id: int | None
) -> Iterator[StartProblem]:
    """quorum: the file of that name beside the metadata log; None: there is none."""
    for finding in findings:
        if finding.state in _LOSING and not _has_other_voters(quorum, node_id):
            yield StartProblem(
                outcome=StartOutcome.LOGS_STRAY,
                path=finding.path,
                problem=finding.text,
                repair="Bring it back from a backup, or from another controller or broker of the "
                "cluster. If the cluster has other controllers, nothing has to be done: the broker "
                "fetches it from them.",
                reason_code=ReasonCode.METADATA_DAMAGED,
            )


def _has_other_voters(quorum: bytes | None, node_id: int | None) -> bool:
    try:
        state = json.loads(quorum or b"{}")
        return any(voter["voterId"] != node_id for voter in state.get("currentVoters") or ())
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return False
