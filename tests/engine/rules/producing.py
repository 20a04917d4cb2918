"""What a log knows of its producers: spec L-14, L-15."""

from tests.engine.rules.case import Case
from tests.engine.rules.steps import OPEN, fails, in_txn, ok, result, state

VERIFYING = {"op": "broker", "transaction.partition.verification.enable": True}
VERIFY = {"op": "verify_txn", "pid": 1, "epoch": 0, "seq": 0, "supports_epoch_bump": False}

CASES = [
    Case(
        "EE-112, L-15.1, L-15.2",
        "the first batch of a transaction needs its guard, and the next none",
        VERIFYING,
        OPEN,
        in_txn(0),
        fails("InvalidTxnStateException"),
        VERIFY,
        result({"needed": True}),
        in_txn(0, guard=True),
        ok(),
        state(open_txns=[0]),
        VERIFY,
        result({"needed": False}),
        in_txn(1),
        ok(),
    ),
]
