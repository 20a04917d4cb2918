"""Arguments that make no sense: a typed error that names the parameter, from every function."""

import copy
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleaner_jobs.local.worker_pool import Workers
from cleaner_jobs.spark import spark_trial
from compactor import api
from compactor.api.arguments import Paths, errors_name_parameters, fitted_argument
from compactor.command_line.command import Output, Request
from compactor.command_line.commands import app
from compactor.command_line.log_read_command import ReadCommand
from compactor.errors import ConfigError, UsageError
from compactor.jobs import engines
from compactor.outcome.exit_codes import error_line
from compactor.settings.rules import option_names
from storage.arguments import PathArg
from storage.errors import LogCompactionError, shown
from tests.storage.test_arguments import NoPath
from tests.support.local_command import run_command
from tests.support.made_log import keyed, make_partition

FUNCTIONS = [name for name in dir(api) if inspect.isfunction(getattr(api, name))]
STRANGE: Sequence[Any] = (
    *(None, "", b"x", 0, -1, 1.5, float("nan"), True, [], [1], (), {}, {"a": 1}, set(), object()),
    *(2**63, -(2**70), "x" * 1000, ["a", "b"], [None], [[]], Path("/proc/no/such"), int, type),
    *(ValueError("x"), "\0", "\ud800", 1j, range(3), bytearray(b"x"), memoryview(b"x"), ...),
    *(
        datetime(2026, 1, 1),
        NotImplemented,
        "/proc/no/such",
        "a-0",
        api.Rules(),
        api.RunOptions(),
    ),
    api.Rules(max_logs="3"),  # type: ignore[arg-type]
    NoPath(),
    *(10**5000, np.zeros(3), np.zeros((9, 2)), np.array(3), [np.zeros(2)]),
)
OPTION = re.compile(r"(?<![\w/])--[a-z]|\bLOG_DIR\b|^TOPIC-PARTITION\b")
OPTIONS = [getattr(api, name) for name in dir(api) if name == "Rules" or "Options" in name]
ASSUMED = api.Rules(assume_fully_replicated=True)
UNRESTRICTED = {("what_was_changed", "error")}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kafka")
    make_partition(root, {0: [keyed(0, "abab")], 4: [keyed(4, "a")]})
    return root


def sound(name: str, log_dir: Path) -> Any:
    """An argument that is as it should be, where one is needed."""
    by_name: dict[str, Any] = {
        "log_dirs": [str(log_dir)],
        "log_dir": str(log_dir),
        "before": str(log_dir),
        "topic_partition": "orders-0",
        "path": str(log_dir / "orders-0"),
        "run_dir": str(log_dir),
        "to": 0,
        "producer_id": 1,
        "text": "0",
    }
    return by_name.get(name, ())


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Started once, for every call whose strange argument is taken."""
    with Workers() as started:
        yield started


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_strange_argument_is_a_typed_error(
    name: str, log_dir: Path, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "Workers", lambda: nullcontext(workers))
    monkeypatch.setattr(spark_trial, "seconds_to_start", lambda _: 1.0)
    function = getattr(api, name)
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if (name, parameter.name) in UNRESTRICTED:
            continue
        for value in STRANGE:
            if parameter.name == "on_progress" and callable(value):
                continue  # what a caller's function raises is the caller's
            needed = {
                each.name: sound(each.name, log_dir)
                for each in parameters.values()
                if each.default is each.empty and each.name != parameter.name
            }
            try:
                found = function(**needed, **{parameter.name: value})
                if inspect.isgenerator(found):
                    next(found, None)
            except api.ConfigError as error:
                assert not OPTION.search(str(error)), (parameter.name, value, str(error))
            except (LogCompactionError, ImportError):  # where there is no pandas
                pass


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_text_that_names_nothing_is_refused_by_its_parameter(
    name: str, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function = getattr(api, name)
    parameters = inspect.signature(function).parameters
    needed = {
        each.name: sound(each.name, log_dir)
        for each in parameters.values()
        if each.default is each.empty
    }
    for parameter in parameters:
        others = tuple(set(needed) - {parameter})
        for value in ("", "x" * 1000, str(tmp_path / ("x" * 254)), "/proc/no/such", "no-such-0"):
            try:
                found = function(**{**needed, parameter: value})
                if inspect.isgenerator(found):
                    next(found, None)
            except api.ConfigError as error:
                told = str(error)
                assert parameter in told or told.startswith(others), (parameter, value, told)
            except api.RefusedError:
                pass  # before the value is looked at


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_strange_field_of_the_options_is_a_typed_error_that_names_it(
    kind: Any, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls: dict[Any, Callable[[Any], Any]] = {
        api.Rules: lambda rules: api.plan(log_dir, rules),
        api.ReadOptions: lambda options: [*api.log_read(log_dir, "orders-0", options)],
        api.DumpOptions: lambda options: [*api.dump(log_dir / "orders-0", options)],
        api.RunOptions: lambda options: api.run(log_dir, ASSUMED, options),
        api.ChangeOptions: lambda options: api.log_roll(log_dir, "orders-0", options),
        api.InspectOptions: lambda options: api.inspect(log_dir, (), ASSUMED, options),
        api.TaskOptions: lambda options: api.plan(log_dir, ASSUMED, None, 1, options),
    }
    for field in fields(kind):
        for value in STRANGE:
            if callable(value) and field.name.startswith("confirm"):
                continue  # what a caller's function raises is the caller's
            try:
                calls[kind](kind(**(sound_fields(kind) | {field.name: value})))
            except api.ConfigError as error:
                told = str(error)
                assert not OPTION.search(told), (field.name, value, told)
                is_of_file = isinstance(value, str | Path) and str(value) in told  # and it is named
                assert is_of_file or field.name in told, (field.name, value, told)
            except (LogCompactionError, OSError):
                pass


def sound_fields(kind: Any) -> dict[str, Any]:
    """With which a call starts no Spark, and changes nothing."""
    possible = {"in_process": True, "dry_run": True, "session": None}
    return {each.name: possible[each.name] for each in fields(kind) if each.name in possible}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_number_of_the_options_that_is_too_small_is_refused_by_its_name(
    kind: Any, log_dir: Path
) -> None:
    """A field without a least has it elsewhere (`Rules`), or may be any time."""
    calls: dict[Any, Callable[[Any], Any]] = {
        api.ReadOptions: lambda options: [*api.log_read(log_dir, "orders-0", options)],
        api.DumpOptions: lambda options: [*api.dump(log_dir / "orders-0", options)],
        api.RunOptions: lambda options: api.run(log_dir, ASSUMED, options),
        api.InspectOptions: lambda options: api.inspect(log_dir, (), ASSUMED, options),
        api.TaskOptions: lambda options: api.plan(
            log_dir, ASSUMED, sample_bytes=1 << 20, options=options
        ),
    }
    of_numbers = [each.name for each in fields(kind) if re.search(r"\bint\b", str(each.type))]
    elsewhere = {"max_logs", "max_bytes", "max_minutes", "due", "high_watermarks", "as_of"}
    elsewhere |= {"first", "end"}
    if kind in calls:
        for name in set(of_numbers) - (elsewhere if kind is api.Rules else {"first", "end"}):
            with pytest.raises(api.UsageError, match=rf"^options\.{name}: expected .* from [01] "):
                calls[kind](kind(**(sound_fields(kind) | {name: -1})))
    else:
        assert set(of_numbers) <= elsewhere


@pytest.mark.parametrize(("name", "most"), [("nice", 19)])
def test_a_number_that_is_too_large_too(name: str, most: int, log_dir: Path) -> None:
    too_much: dict[str, Any] = {name: most + 1}
    options = replace(api.RunOptions(dry_run=True, in_process=True), **too_much)
    with pytest.raises(api.UsageError, match=rf"^options\.{name}: .* from 0 to {most}, not 20 "):
        api.run(log_dir, ASSUMED, options)
    with pytest.raises(api.UsageError, match=r"^options\.io_limit: .* from 1 on, not 0 \(int\)"):
        api.run(log_dir, ASSUMED, replace(options, nice=None, io_limit=0))


@pytest.mark.parametrize("name", ["work_dir", "keep_originals", "output"])
def test_a_name_that_no_file_can_have_is_refused_by_its_parameter(
    name: str, log_dir: Path, tmp_path: Path
) -> None:
    too_long: dict[str, Any] = {name: str(tmp_path / ("x" * 256))}
    options = replace(api.RunOptions(dry_run=True, in_process=True), **too_long)
    with pytest.raises(api.UsageError, match=rf"^options\.{name} .*: File name too long$"):
        api.run(log_dir, ASSUMED, options)


SIGNATURE = inspect.signature(api.run)


@pytest.mark.parametrize(
    ("error", "parameters", "options"),
    [
        (UsageError("needs {}, which is not given", "keep_for_ms", None, ["keep_originals"]),
         "options.keep_for_ms: needs options.keep_originals, which is not given",
         "--keep-for: needs --keep-originals, which is not given"),
        (UsageError("say {} or {}", "settings", "x={}", ["include", "topic_configs"]),
         "rules.settings x={}: say rules.include or rules.topic_configs",
         "--set x={}: say --include or --topic-configs"),
        (UsageError("leave out {} and --other", "log_dirs", "/data", ["log_dirs"]),
         "log_dirs /data: leave out log_dirs and --other",
         "LOG_DIR /data: leave out LOG_DIR and --other"),
        (UsageError("is no file", "path", "/a--set/LOG_DIR"),
         "path /a--set/LOG_DIR: is no file", "path /a--set/LOG_DIR: is no file"),
        (ConfigError("not TOML", value="/c.toml"), "rules.config /c.toml: not TOML",
         "/c.toml: not TOML"),
        (ConfigError("x = 1: expected 2", "/t.json: topic a"),
         "rules.topic_configs /t.json: topic a: x = 1: expected 2",
         "/t.json: topic a: x = 1: expected 2"),
        (UsageError("is no report", "run_reports", "/logs"),
         "log_dirs /logs: is no report", "run_reports /logs: is no report"),
    ],
)  # fmt: skip
def test_a_caller_reads_parameters_and_the_command_line_shows_options(
    error: ConfigError, parameters: str, options: str
) -> None:
    arguments = {
        "log_dirs": ["/logs"],
        "rules": api.Rules(config="/c.toml", topic_configs="/t.json"),
    }
    with pytest.raises(ConfigError) as raised, errors_name_parameters(SIGNATURE, arguments):
        raise error
    assert (str(raised.value), raised.value.text(option_names())) == (parameters, options)
    again = copy.copy(raised.value)
    assert (str(again), again.reason_code) == (parameters, error.reason_code)


def test_the_command_line_tells_the_same_error_with_its_options(log_dir: Path) -> None:
    options = api.ReadOptions(isolation="x")
    with pytest.raises(api.UsageError, match=r"^options\.isolation x: expected") as raised:
        list(api.log_read(log_dir, "orders-0", options))
    names = Request(ReadCommand, {}, Output()).names
    line = error_line(raised.value, names)
    assert line.startswith("--isolation x: expected one of log-end")
    ended = run_command("log", "read", log_dir, "orders-1")
    assert ended.error.startswith("compactor: TOPIC-PARTITION orders-1: ")


@pytest.mark.parametrize(
    ("value", "annotation", "problem"),
    [
        (3, str, "a string, not 3 (int)"),
        (True, int, "an integer, not True (bool)"),
        (2**63, int, "an integer of 64 bits, not 9223372036854775808 (int)"),
        (2**63, int | None, "an integer of 64 bits, not 9223372036854775808 (int)"),
        ("x", int | None, "an integer or None, not 'x' (str)"),
        ({}, Sequence[str], "a list of strings, not {} (dict)"),
        ("yes", bool, "True or False, not 'yes' (str)"),
        (float("nan"), float, "a number, not nan (float)"),
        ("a\0b", PathArg, r"text without a NUL that can be encoded, not 'a\x00b' (str)"),
        ("a\0b", str | None, r"text without a NUL that can be encoded, not 'a\x00b' (str)"),
        (3, Paths, "a list of strings, not 3 (int)"),
        (bytearray(b"/"), Paths, "a list of strings, not bytearray(b'/') (bytearray)"),
        ({}, Iterable[Any], "a list, not {} (dict)"),
        ([], datetime | None, "a datetime or None, not [] (list)"),
        ("size", api.Order, " or ".join(repr(o.value) for o in api.Order) + ", not 'size' (str)"),
        (
            "a",
            tuple[tuple[str, str], ...],
            "a list of pairs of a string and a string, not 'a' (str)",
        ),
    ],
)
def test_words(value: Any, annotation: Any, problem: str) -> None:
    with pytest.raises(api.UsageError) as raised:
        fitted_argument("it", value, annotation)
    assert str(raised.value) == f"it: expected {problem}"


def test_what_comes_once_is_checked_as_it_comes() -> None:
    with pytest.raises(api.UsageError, match=r"^texts\[1\]: expected a string, not 1 \(int\)"):
        api.conditions_of_plan(iter(["dirty_ratio > 0.8", 1]))  # type: ignore[arg-type]


def test_what_is_wrong_within_an_argument_is_named() -> None:
    with pytest.raises(api.UsageError, match=r"^log_dirs\[1\]: expected a string, not None"):
        api.plan(["/data", None])  # type: ignore[list-item]
    with pytest.raises(api.UsageError, match=r"^rules\.max_logs: expected an integer or None"):
        api.plan("/data", api.Rules(max_logs="3"))  # type: ignore[arg-type]
    with pytest.raises(api.UsageError, match=r"^plan\(\): missing a required argument: 'log_dirs'"):
        api.plan()  # type: ignore[call-arg]


FITTING = {
    "key": ["None", "b'x'"],
    "value": ["None", "b'x'"],
    "timestamp_ms": ["None", "0", "-1"],
    "headers": ["[]", "()", "set()"],
}


@pytest.mark.parametrize("field", api.NewRecord._fields)
def test_what_is_strange_in_a_new_record_is_named(field: str, log_dir: Path) -> None:
    options = api.ChangeOptions(dry_run=True, only_replica=True, rules=ASSUMED)
    record = api.NewRecord(b"a", b"b")
    for value in STRANGE:
        if shown(value) in FITTING[field]:
            continue
        records = [record, record._replace(**{field: value})]
        with pytest.raises(api.UsageError, match=rf"^records\[1\]\.{field}\b.*: expected"):
            api.log_append(log_dir, "orders-0", records, "none", options)
            pytest.fail(shown(value))


def test_a_cleaner_says_what_it_does_not_take(tmp_path: Path) -> None:
    assert api.Cleaner(tmp_path)
    with pytest.raises(api.UsageError, match=r"^Cleaner\(\): missing a required argument"):
        api.Cleaner()  # type: ignore[call-arg]
    for value in STRANGE:
        if not isinstance(value, str | Path):
            with pytest.raises(api.UsageError, match=r"^work_dir: expected a string"):
                api.Cleaner(value)
        if not isinstance(value, api.RunOptions):
            with pytest.raises(api.UsageError, match=r"^options: expected RunOptions"):
                api.Cleaner(tmp_path, value)


def test_a_path_may_be_one_or_several_and_of_any_kind(log_dir: Path) -> None:
    for log_dirs in (log_dir, str(log_dir), [log_dir], (str(log_dir),)):
        assert len(api.plan(log_dirs).round_plan.inventory) == 1
    assert api.verify(log_dir).partitions == api.verify(str(log_dir)).partitions
    assert fitted_argument("partitions", "orders-0", Sequence[str]) == ("orders-0",)


def test_a_time_may_be_a_datetime(log_dir: Path) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    for as_of in (moment, moment.replace(tzinfo=None), "2026-01-02T03:04:05Z", 1767323045000):
        planned = api.plan(log_dir, api.Rules(as_of=as_of, any_clock=True))
        assert planned.round_plan.as_of_ms == 1767323045000
    options = api.ReadOptions(first=datetime.fromtimestamp(0.13, UTC))  # offset 3 has 130 ms
    found = [r.offset for records in api.log_read(log_dir, "orders-0", options) for r in records]
    assert found == [3, 4]
    options = api.ReadOptions(first=4)
    assert [r.offset for rs in api.log_read(log_dir, "orders-0", options) for r in rs] == [4]


@pytest.mark.parametrize("field", ["max_logs", "max_bytes", "max_minutes"])
def test_a_budget_below_zero_is_refused(field: str, log_dir: Path) -> None:
    with pytest.raises(api.UsageError, match=rf"^rules\.{field} -1: expected 0 or more"):
        api.plan(log_dir, api.Rules(**{field: -1}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in FUNCTIONS
        if (given := inspect.signature(getattr(api, name)).parameters.get("log_dirs"))
        and given.default is given.empty
    ],
)
def test_no_log_directory_at_all_is_a_mistake(name: str, log_dir: Path) -> None:
    """A list that a program has built, and left empty, must not pass for one that was looked at."""
    function = getattr(api, name)
    needed = {
        each.name: sound(each.name, log_dir)
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.name != "log_dirs"
    }
    with pytest.raises(api.UsageError, match=r"^log_dirs: none was given$"):
        function([], **needed)


NUMBERS = {
    ("plan", "--max-logs"),
    ("plan", "--max-minutes"),
    ("run", "--max-logs"),
    ("run", "--max-minutes"),
    ("dump", "--from-offset"),
    ("dump", "--to-offset"),
    ("dump", "--limit"),
    ("log read", "--limit"),
    ("log read", "--max-bytes"),
    ("log delete-records", "--before"),
    ("log truncate", "--to"),
    ("log abort", "--producer-id"),
}


@pytest.mark.parametrize("text", [str(2**63), "9" * 400, "inf", "1e308"])
@pytest.mark.parametrize(("command", "option"), sorted(NUMBERS))
def test_a_number_that_is_too_large_is_a_mistake_by_the_name_of_its_option(
    log_dir: Path, command: str, option: str, text: str
) -> None:
    places: list[object] = [log_dir, "orders-0"] if command.startswith("log ") else [log_dir]
    if command == "dump":
        places = [log_dir / "orders-0"]
    more = ["--assume-fully-replicated"] if command == "run" else []
    ended = run_command(*command.split(), *places, *more, option, text)
    assert ended.code == 2, ended
    assert option in ended.error


def test_every_number_of_the_command_line_is_tried() -> None:
    found = set()
    commands: list[tuple[tuple[str, ...], Any]] = [((), app)]
    for words, command in commands:
        below: Any = getattr(command, "commands", {})
        commands += [((*words, word), each) for word, each in below.items()]
        for option in command.params:
            number = getattr(getattr(option, "declared", None), "number", None)
            if number is not None and number.most is None:
                found.add((" ".join(words), option.opts[0]))
    rows = {("plan", "--top")}  # that are shown: there may be fewer
    assert found == NUMBERS | rows
