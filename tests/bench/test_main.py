"""The command without anything to measure: what was measured is read and shown."""

from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench.chart import draw, groups
from tests.bench.results import to_json
from tests.bench.samples import log_result, results
from tests.bench.table import document, page


def test_earlier_results_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    both = results(log_result("a")), results(log_result("b"))
    for file, run in zip(files, both, strict=True):
        file.write_text(to_json(run))
    assert bench.main(["--read", *map(str, files)]) == 0
    assert capsys.readouterr().out == document(results(log_result("a"), log_result("b")))


def test_the_page_is_written_on_demand_and_never_with_quick_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, picture, file = (tmp_path / name for name in ("page.md", "chart.svg", "a.json"))
    empty = "<!-- begin: written by make bench -->\n<!-- end: written by make bench -->\n"
    written.write_text(empty)
    monkeypatch.setattr(bench, "PAGE", written)
    monkeypatch.setattr(bench, "CHART", picture)
    file.write_text(to_json(results(quick=True)))
    assert bench.main(["--read", str(file), "--write-docs"]) == 1
    with pytest.raises(SystemExit):
        bench.main(["--quick", "--write-docs"])
    file.write_text(to_json(results()))
    assert bench.main(["--read", str(file)]) == 0
    assert written.read_text() == empty
    assert not picture.exists()
    assert bench.main(["--read", str(file), "--write-docs"]) == 0
    assert page(results()) in written.read_text()
    assert picture.read_text("utf-8") == draw(groups(results()))


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}'])
def test_a_file_that_is_no_result_is_named(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    assert bench.main(["--read", str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"bench: {file}: ")
