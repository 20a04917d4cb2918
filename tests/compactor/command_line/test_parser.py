"""What somebody types fills the fields that declare the options; expected values are by hand."""

from dataclasses import fields
from typing import Any

import click
import pytest

from compactor import api
from compactor.command_line.command import Output, make
from compactor.command_line.commands import app
from compactor.command_line.parser import parse, usage_message
from compactor.settings.options import options_of

OF_NO_OPTION = {"due", "known_whole", "high_watermarks"}
OF_CALLERS_ALONE = {"map_capacity", "session", "workers", "in_process", "retention"}


def made(*words: str) -> Any:
    """Return the command of these words."""
    request = parse(app, words)
    assert request is not None
    return make(request.kind, request.values, request.output)


def test_words_fill_the_records_of_the_api() -> None:
    words = "run /a /b --set x=1 --set y= --max-bytes 500GB --order oldest --keep-for 7d --retry"
    more = "--on-corrupt fail --wait 5 --io-limit 2MB/s --executor-path /a/=/b --allow-file-system"
    run = made(*words.split(), *more.split(), "nfs4", "--report", "r.json", "--quiet")
    assert run.log_dirs == ("/a", "/b")
    assert run.rules == api.Rules(
        settings={"x": "1", "y": ""}, max_bytes=500 * 10**9, order=api.Order.OLDEST
    )
    assert run.options == api.RunOptions(
        keep_for_ms=7 * 86_400_000,
        retry=True,
        fail_on_corrupt=True,
        wait_seconds=5,
        io_limit=2_000_000,
        executor_paths=(("/a", "/b"),),
        allowed_file_systems=("nfs4",),
    )
    assert run.output == Output(report=("r.json",), quiet=True)


def test_without_options_every_field_has_the_default_of_the_api() -> None:
    run: Any = made("run", "/a\udcff")  # bytes that are no text, as the system hands them over
    assert (run.rules, run.options, run.output) == (api.Rules(), api.RunOptions(), Output())
    assert run.log_dirs == ("/a\udcff",)


@pytest.mark.parametrize(
    ("record", "without"), [(api.Rules, OF_NO_OPTION), (api.RunOptions, OF_CALLERS_ALONE)]
)
def test_each_field_has_an_option_of_run(record: Any, without: set[str]) -> None:
    declared = options_of(record)
    assert {each.name for each in fields(record)} - without == set(declared)
    taken = {name for parameter in app.commands["run"].params for name in parameter.opts}
    assert [each.name for each in declared.values() if each.name not in taken] == []


def test_a_command_has_one_name_where_it_is_declared_and_where_it_is_typed() -> None:
    typed: dict[str, Any] = dict(app.commands)
    of_log = typed.pop("log").commands
    typed |= {f"log {name}": each for name, each in of_log.items()}
    assert len(typed) == 19
    assert {name: each.kind.NAME for name, each in typed.items()} == {name: name for name in typed}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("plan /a --top x", "--top x: expected a whole number"),
        ("plan /a --order no", "--order: 'no' is not one of 'gain', 'filthiest', 'smallest', "),
        ("log truncate /a b-0", "--to is missing"),
        ("plan /a --log-format \udcff", "--log-format: "),
        ("run /a --wait 604801", "--wait 604801: expected 604800 or less"),
    ],
)
def test_a_wrong_word_is_named(words: str, message: str) -> None:
    with pytest.raises(click.UsageError) as error:
        parse(app, words.split())
    assert usage_message(error.value).startswith(message)
