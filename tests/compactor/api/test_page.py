"""The examples of docs/api.md, run in their order over a log in the place of the one they name."""

import doctest
import json
from pathlib import Path

import pytest

from tests.support.local_command import use_local_rounds
from tests.support.made_log import keyed, make_partition

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
DIRTY = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_partition(tmp_path / "kafka", {0: [keyed(0, "abab")], 4: [keyed(4, "a")]})
    (tmp_path / "kafka" / "replication-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    for path in tmp_path.glob("kafka/orders-0/*.snapshot"):
        path.unlink()  # they are made up
    (tmp_path / "topics.json").write_text(json.dumps({"orders": DIRTY}))
    use_local_rounds(monkeypatch, tmp_path / "work")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8").replace("/data/", f"{tmp_path}/")
    examples = doctest.DocTestParser().get_doctest(text, {}, "api.md", str(PAGE), 0)
    assert len(examples.examples) > 20
    failed, _ = doctest.DocTestRunner().run(examples)
    assert not failed, capsys.readouterr().out
