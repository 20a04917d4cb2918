"""Formats that machines read are UTF-8, whatever the locale's encoding is."""

import contextlib
import csv
import io
import json
from pathlib import Path

import pytest

from compactor.command_line import cli
from storage.formats import clean_shutdown
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir

KEY = "schlüssel-☃"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    batch = Batch((Message(KEY.encode(), b"v", 1000),))
    build_log_dir(tmp_path / "log", BuiltLog("orders", 0, ((batch,),)))
    assert (tmp_path / "log" / clean_shutdown.CLEAN_SHUTDOWN).exists()
    return tmp_path / "log"


def written(encoding: str, *words: object) -> bytes:
    """What a command writes to a standard output of an encoding."""
    taken = io.BytesIO()
    out = io.TextIOWrapper(taken, encoding, "strict", newline="\n")
    with contextlib.redirect_stdout(out):
        assert cli.main([str(word) for word in words]) == 0
    out.flush()
    return taken.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
class TestUtf8:
    def test_log_read_as_json(self, log_dir: Path, encoding: str) -> None:
        lines = written(encoding, "log", "read", log_dir, "orders-0", "--format", "json")
        assert json.loads(lines.decode("utf-8").splitlines()[0])["key"] == KEY

    def test_log_read_as_csv(self, log_dir: Path, encoding: str) -> None:
        lines = written(encoding, "log", "read", log_dir, "orders-0", "--format", "csv")
        rows = list(csv.DictReader(lines.decode("utf-8").splitlines()))
        assert rows[0]["key"] == KEY

    def test_dump_as_json(self, log_dir: Path, encoding: str) -> None:
        lines = written(encoding, "dump", log_dir, "orders-0", "--format", "json")
        found = [json.loads(line) for line in lines.decode("utf-8").splitlines()]
        assert KEY in [row.get("key") for row in found]


def test_lines_for_a_person_have_the_encoding_of_their_terminal(log_dir: Path) -> None:
    lines = written("latin-1", "log", "read", log_dir, "orders-0")
    assert "schlüssel-\\u2603" in lines.decode("latin-1")
    assert "schlüssel-\\u2603" in written("latin-1", "dump", log_dir, "orders-0").decode("latin-1")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_drawing_has_characters_of_the_terminal(log_dir: Path, encoding: str) -> None:
    """Where it is no terminal, too: a pipe, a mail."""
    policy = "cleanup.policy=compact"
    lines = written(encoding, "explain", log_dir, "orders-0", "--set", policy).decode(encoding)
    assert "." * 100 in lines, "the active segment is all there is of this log"
    assert "\\u2" not in lines and "\\xb7" not in lines
