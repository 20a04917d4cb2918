"""Documents of plans and runs that never were, with names that are hard to show."""

import random
from typing import Any

from compactor.outcome.exit_codes import ExitCode
from compactor.reason_codes import ReasonCode
from compactor.views.report_json import summary

EVIL = [
    "<img src=x onerror=alert(1)>",
    "</script><script>window.broken=1</script>",
    "a\x1b[31mred\x07\n\u202ebackwards",
    "quotes\"'&amp;{{7*7}}",
    "no-utf8-\udcff",
]
_REASONS = [
    ("passed-over", "below-dirty-ratio", "dirty ratio 0.1200 is not above 0.5: 12 of 100 bytes"),
    ("passed-over", "nothing-new", "cleaned up to offset 1200; all that is newer is active"),
    ("passed-over", "open-transaction", "5000 bytes wait: producer 7 has one open since offset 3"),
    ("passed-over", "not-compacted", "cleanup.policy is delete, so it is not compacted"),
    ("set-aside", "damaged", "/data/kafka/x/00000000000000000000.log, byte 512: bad checksum"),
    ("failed", "no-room", "no room: 12.0 GB needed, 3.1 GB free"),
]
_TOPICS = ["__consumer_offsets", "orders", "customers", "payments.ledger", "inventory-state"]


def _ending(command: str) -> dict[str, Any]:
    head = summary(command, ExitCode.PARTIAL, reason_code=ReasonCode.LOGS_SET_ASIDE)
    return head | {
        "changed": False,
        "run_id": "3f9c2b1a",
        "version": "0.1.0",
        "host": "broker-7",
        "started_at_ms": 1_700_000_000_000,
        "started_at": "2023-11-14T22:13:20.000Z",
        "seconds": 41.8,
        "as_of_ms": 1_700_000_000_000,
        "as_of": "2023-11-14T22:13:20.000Z",
        "log_dirs": [{"path": "/data/disk-1/kafka"}, {"path": "/data/disk-2/kafka"}],
        "warnings": [],
        "notices": [],
    }


def _log(dice: random.Random, number: int) -> dict[str, Any]:
    total = int(dice.lognormvariate(18, 2))
    clean = int(total * dice.random() * 0.6)
    dirty = int((total - clean) * dice.random())
    return {
        "log_dir": f"/data/disk-{number % 2 + 1}/kafka",
        "topic": EVIL[number] if number < len(EVIL) else f"{_TOPICS[number % 5]}{number // 250}",
        "partition": number % 50,
        "total_bytes": total,
        "clean_bytes": clean,
        "dirty_bytes": dirty,
        "held_bytes": int(dirty * max(dice.random() - 0.5, 0)),
    }


def plan_document(logs: int) -> dict[str, Any]:
    """As `plan --report` writes it, of what the page looks at."""
    dice, taken, others = random.Random(7), [], []
    for number in range(logs):
        log = _log(dice, number)
        if number % 3:
            status, code, reason = _REASONS[number % 5]
            why = {"status": status, "reason": f"{reason} ({number})", "reason_code": code}
            others.append(log | why | {"gain_bytes": 0})
        else:
            taken.append(log | {"gain_bytes": log["dirty_bytes"] - log["held_bytes"]})
    totals = {
        "to_clean": len(taken),
        "cleanable_bytes": sum(log["gain_bytes"] for log in taken),
    }
    refused = ["/data/disk-1/kafka/.lock: held by another process"]
    return _ending("plan") | {
        "totals": totals, "refusals": refused, "logs": taken, "not_taken": others,
    }  # fmt: skip


def run_document(logs: int, dry_run: bool = False) -> dict[str, Any]:
    """As `run --report` writes it, of what the page looks at."""
    dice, made = random.Random(11), []
    done = "would-clean" if dry_run else "cleaned"
    for number in range(logs):
        log = _log(dice, number)
        if number % 4 == 3:
            status, code, reason = _REASONS[number % 6]
            log |= {"status": status, "reason": reason, "reason_code": code}
            log |= {"bytes_before": 0, "bytes_after": 0}
        else:
            before = log["clean_bytes"] + log["dirty_bytes"]
            after = int(before * dice.random() * 0.5)
            log |= {"status": done, "reason": None, "reason_code": None}
            log |= {"bytes_before": before, "bytes_after": after}
        made.append(log)
    cleaned = [log for log in made if log["status"] == done]
    counts = dict.fromkeys(("cleaned", "would-clean", "failed"), 0) | {done: len(cleaned)}
    dropped = {"superseded": 292_779, "tombstone": 1_204, "null_key": 0, "aborted": 40, "marker": 9}
    seconds = {"survey": 0.4, "start engine": 4.1, "scan": 11.2, "resolve": 3.9, "rewrite": 19.6}
    return _ending("run") | {
        "dry_run": dry_run,
        "changed": not dry_run,
        "totals": {
            "logs": counts,
            "bytes_before": sum(log["bytes_before"] for log in cleaned),
            "bytes_after": sum(log["bytes_after"] for log in cleaned),
            "records": {"read": 342_700, "kept": 49_921, "dropped": dropped},
        },
        "phases": [{"name": name, "seconds": took} for name, took in seconds.items()],
        "logs": made,
    }
