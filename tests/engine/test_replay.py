"""A script on the command line: its transcript."""

import json
from pathlib import Path
from typing import Any

import pytest

from storage.files.local import LOCAL
from tests.engine.replay.__main__ import main
from tests.engine.replay.replayed import kernels_used, replayed

SCRIPT = """{"op":"config","segment.bytes":"1000","index.interval.bytes":"100"}

{"op":"open"}
# a transaction that is aborted
{"op":"append","records":[{"k":"a","v":"1"},{"k":"b","v":null}],"pid":7,"epoch":0,"seq":0,"txn":true}
{"op":"append","records":[{"k":"a","v":"2"}],"pid":7,"epoch":0,"seq":"next+1","txn":true}
{"op":"end_txn","pid":7,"epoch":"current","commit":false}
{"op":"high_watermark","offset":"end"}
{"op":"read","offset":"end-1","isolation":"committed"}
"""  # the example of tests/oracle/README.md, with Kafka's answers below


def test_the_example_of_the_oracle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(SCRIPT)
    assert main([str(script), str(tmp_path / "log")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["n"] for line in lines] == [1, 3, 5, 6, 7, 8, 9]
    assert lines[3]["error"] == "OutOfOrderSequenceException"
    assert lines[3]["resolved"] == {"seq": 3}
    assert lines[6]["result"] == {
        "fetch_offset": {"offset": 2, "segment": 0, "position": 78},
        "size": 78,
        "crc32": 1107374055,
        "first_entry_incomplete": False,
        "batches": [[2, 2, 78]],
        "aborted": [[7, 0]],
    }
    assert lines[6]["state"]["segments"] == [
        {"base_offset": 0, "log": 156, "index": 0, "timeindex": 0, "txnindex": 34}
    ]


APPENDS = [{"op": "append", "records": [{"k": "a", "v": "1"}]}] * 9
ONE_LOG = [{"op": "config", "index.interval.bytes": "1"}, {"op": "open"}, *APPENDS]
MANY_LOGS = [
    {"op": "manager"},
    {"op": "config", "index.interval.bytes": "1"},
    {"op": "startup"},
    {"op": "create", "log": "t-0"},
    *APPENDS,
]


@pytest.mark.parametrize("script", [ONE_LOG, MANY_LOGS], ids=["one log", "many logs"])
def test_the_files_of_an_open_log_are_told_as_kafka_has_them(
    script: list[dict[str, Any]], tmp_path: Path
) -> None:
    """L-4: with their index entries, which an append without kernels writes at once."""
    told = []
    for with_kernels in (False, True):
        with kernels_used(with_kernels):
            lines = [*script, {"op": "files"}]
            told.append(replayed(LOCAL, str(tmp_path / str(with_kernels)), lines))
    assert any(file["name"].endswith(".index") for file in told[0][-1]["result"])
    assert told[1] == told[0]


def test_settings_of_a_broker_may_be_text_as_kafkas_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A transaction that nobody verified is taken, and a producer is forgotten after 200 ms."""
    path = tmp_path / "script.jsonl"
    path.write_text(
        '{"op":"broker","transaction.partition.verification.enable":" FALSE",'
        '"producer.id.expiration.ms":"200"}\n{"op":"open"}\n'
        '{"op":"append","records":[{"k":"a","v":"a"}],"pid":5,"epoch":0,"seq":0,"txn":true}\n'
        '{"op":"append","records":[{"k":"a","v":"a"}],"pid":6,"epoch":0,"seq":0}\n'
        '{"op":"clock","advance":1000000}\n'
        '{"op":"close"}\n{"op":"open","clean":true}\n'
    )
    assert main([str(path), str(tmp_path / "log")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[2]["result"]["first_offset"] == 0
    assert len(lines[3]["state"]["producers"]) == 2
    assert [line for line in map(str, lines[-1]["state"]["producers"]) if "6" in line] == []
