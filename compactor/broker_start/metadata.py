"""A metadata log that proves nothing, or not all: what a start makes of the logs beside it. Pure.

A broker that is its only controller goes on with what it can read of it, which may be nothing, and
each log that this does not name is a stray one. Where the quorum has other voters, it asks them.
Source: Kafka, KafkaRaftLog, QuorumController, LogManager.isStrayKraftReplica; spec F-16.4.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compactor.broker_start.values import StartOutcome, StartProblem
from compactor.host.shell_commands import tool
from compactor.reason_codes import ReasonCode
from compactor.settings.sources import Finding, State

_LOSING = (State.EMPTY, State.NEVER_USED, State.DAMAGED)
_CUT_OFF = (State.TORN_AFTER_STOP, State.DAMAGED_END, State.SNAPSHOT)  # what is before, stays


class MetadataLeft(NamedTuple):
    """What a start goes on with."""

    names_any: bool  # there is a topic or a broker in it
    names_all: bool  # it has each log here

    def loses_logs(self, state: State) -> bool:
        """Say whether logs become stray ones for want of what cannot be read."""
        if state in _LOSING or (state is State.TORN and not self.names_any):
            return True
        return state in _CUT_OFF and not self.names_all


def problems_of_metadata(
    findings: Sequence[Finding], left: MetadataLeft, quorum: bytes | None, node_id: int | None
) -> Iterator[StartProblem]:
    """Say what a start makes of a metadata log that does not prove which topics there are.

    quorum: the file of that name beside the metadata log; None: there is none.
    """
    for finding in findings:
        if left.loses_logs(finding.state) and not has_other_voters(quorum, node_id):
            yield StartProblem(
                outcome=StartOutcome.LOGS_STRAY,
                path=finding.path,
                problem=finding.text,
                repair="Bring it back from a backup, or from another controller or broker of the "
                "cluster. If the cluster has other controllers, nothing has to be done: the broker "
                "fetches it from them.",
                reason_code=ReasonCode.METADATA_DAMAGED,
            )


class TornSnapshot(NamedTuple):
    """The newest snapshot, which a start goes by, and which is not whole."""

    path: str
    problem: str
    left: MetadataLeft | None  # what a start goes on with; None: the broker ends
    is_dispensable: bool  # what is older, and the log behind it, have all that is needed here


def problems_of_snapshot(torn: TornSnapshot) -> Iterator[StartProblem]:
    """Say what a start makes of it. Other controllers send what is behind it alone."""
    if torn.left is not None and torn.left.names_all:
        return
    command, repair = None, "Bring it back from a backup, or from another node of the cluster."
    if torn.is_dispensable:
        command = tool("rm", "--", torn.path)
        repair = "Remove it: the rest of the metadata log has all that it had."
    yield StartProblem(
        outcome=StartOutcome.BROKER_ENDS if torn.left is None else StartOutcome.LOGS_STRAY,
        path=torn.path,
        problem=torn.problem,
        repair=repair,
        command=command,
        reason_code=ReasonCode.METADATA_DAMAGED,
    )


def has_other_voters(quorum: bytes | None, node_id: int | None) -> bool:
    """Say whether a broker that starts here asks others for what its metadata log lacks."""
    try:
        state = json.loads(quorum or b"{}")
        return any(voter["voterId"] != node_id for voter in state.get("currentVoters") or ())
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return False
