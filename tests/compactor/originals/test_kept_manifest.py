"""The files in which a run notes what it replaced: their bytes by hand; all else is refused."""

import json
from typing import Any

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.kept_files import FileMark
from compactor.originals import kept_manifest
from compactor.originals.kept_manifest import KeptRun, KeptStep, LogBefore, parse
from storage.errors import CorruptFileError, UnsupportedFormatError

PATH = "/originals/cafe/0/orders-7/000003.json"
LOG_FILE = FileMark("00000000000000000007.log", 4096, "00ff00ff00ff00ff")
STEP = KeptStep(
    number=3, originals=(LOG_FILE,), put=(), cleaned_to=12, deleted_up_to=9, rolled_at=None
)
STEP_BYTES = b"""{
 "format": "compactor-originals-step",
 "schema_version": 2,
 "number": 3,
 "originals": [
  {
   "name": "00000000000000000007.log",
   "size_bytes": 4096,
   "checksum": "00ff00ff00ff00ff"
  }
 ],
 "put": [],
 "cleaned_to": 12,
 "deleted_up_to": 9,
 "rolled_at": null
}
"""
LOG = LogBefore(
    topic_id="AAAAAAAAAAAAAAAAAAAAAQ",
    segments=(LOG_FILE,),
    end_offset=20,
    cleaner_offset=None,
    log_start_offset=7,
)
LOG_BYTES = b"""{
 "format": "compactor-originals-log",
 "schema_version": 1,
 "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
 "segments": [
  {
   "name": "00000000000000000007.log",
   "size_bytes": 4096,
   "checksum": "00ff00ff00ff00ff"
  }
 ],
 "end_offset": 20,
 "cleaner_offset": null,
 "log_start_offset": 7
}
"""
RUN = KeptRun("cafe", 1_700_000_000_000, ("/disk1/kafka", "/disk2/kafka"))
RUN_BYTES = b"""{
 "format": "compactor-originals",
 "schema_version": 1,
 "run_id": "cafe",
 "started_at_ms": 1700000000000,
 "log_dirs": [
  "/disk1/kafka",
  "/disk2/kafka"
 ]
}
"""
KINDS: dict[str, tuple[Any, bytes]] = {
    "step": (STEP, STEP_BYTES),
    "log": (LOG, LOG_BYTES),
    "run": (RUN, RUN_BYTES),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_written_read_back_and_refused_where_it_is_cut_short(kind: str) -> None:
    value, data = KINDS[kind]
    assert kept_manifest.document(value) == data
    assert parse(type(value), data, PATH) == value
    for end in range(len(data) - 2):  # its last line ends after the brace
        with pytest.raises(CorruptFileError, match="not JSON") as refused:
            parse(type(value), data[:end], PATH)
        assert refused.value.path == PATH
    with pytest.raises(CorruptFileError, match="not JSON"):
        parse(type(value), b"[" * 100_000, PATH)


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_or_version_is_refused(kind: str) -> None:
    value, data = KINDS[kind]
    for other, others in KINDS.values():
        if other is not value:
            with pytest.raises(CorruptFileError, match="not a compactor-originals"):
                parse(type(value), others, PATH)
    with pytest.raises(UnsupportedFormatError, match="version 9, expected"):
        parse(type(value), changed(data, schema_version=9), PATH)


def test_a_step_of_an_older_version_can_only_be_discarded() -> None:
    """Such a version has not written what the log was before: it could not be recognised."""
    with pytest.raises(RefusedError, match=r"older version .* drop it with --discard"):
        parse(KeptStep, changed(STEP_BYTES, schema_version=1), PATH)


@pytest.mark.parametrize(
    "name",
    [
        "../00000000000000000007.log",
        "/etc/passwd",
        "7.log",
        "0000000000000000000x.log",
        "00000000000000000007.log.deleted",
        "00000000000000000007",
        "",
        7,
        None,
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: object) -> None:
    mark = {"name": name, "size_bytes": 1, "checksum": "0" * 16}
    with pytest.raises(CorruptFileError, match="is not the name of a file of a log"):
        parse(KeptStep, changed(STEP_BYTES, originals=[mark]), PATH)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"number": -1}, "number: -1 is not a possible number"),
        ({"number": True}, "number: true is not"),
        ({"cleaned_to": 2**63}, "is not a possible number"),
        ({"cleaned_to": "12"}, "is not a possible number"),
        ({"rolled_at": 1.5}, "rolled_at: 1.5 is not"),
        ({"put": {}}, "put: no list of files"),
        ({"put": ["x.log"]}, "'x.log' is not a file"),
        ({"put": [{**LOG_FILE._asdict(), "checksum": "FF" * 8}]}, "is not a checksum"),
        ({"put": [{**LOG_FILE._asdict(), "size_bytes": None}]}, "size_bytes: null is not"),
    ],
)
def test_a_step_of_impossible_values_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        parse(KeptStep, changed(STEP_BYTES, **fields), PATH)


@pytest.mark.parametrize("segments", [[], [{**LOG_FILE._asdict(), "name": f"{7:020d}.index"}]])
def test_a_log_without_segments_is_refused(segments: list[Any]) -> None:
    with pytest.raises(CorruptFileError, match=r"no list of \.log files"):
        parse(LogBefore, changed(LOG_BYTES, segments=segments), PATH)


@pytest.mark.parametrize(
    ("name", "number"),
    [("000003.json", 3), ("999999.json", 999_999), ("log.json", None), ("00003.json", None),
     ("000003.json.tmp", None), ("٠٠٠٠٠٣.json", None)],
)  # fmt: skip
def test_steps_are_numbered_by_their_names(name: str, number: int | None) -> None:
    assert kept_manifest.step_number(name) == number
    if number is not None:
        assert kept_manifest.step_name(number) == name


def changed(document: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(document), **fields}).encode()
