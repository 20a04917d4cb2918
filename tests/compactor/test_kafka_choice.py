"""Whose answer is given: by option, file, the broker's software; and what differs (V-1, V-2)."""

import json
from pathlib import Path

import pytest
import zstandard

from cleaner_jobs.tasks import rewrite_task, scan
from compactor import api
from compactor.command_line.cli import main
from compactor.errors import ConfigError, RefusedError
from compactor.settings.config import load_config
from storage.codecs.compression import Codec, installed_builds
from storage.formats import checkpoint
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.kafka_versions import BY_NAME, CodecBuilds
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.settings.test_cluster_settings import cluster, configured
from tests.engine.replay.__main__ import main as replay
from tests.storage.log.test_cluster_metadata import A, batches, config, log, topic
from tests.support.file_states import state_of
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir

NOW_MS = 1_000_000
METADATA_MS = 1_700_000_000_000
EMPTY_BATCH_BYTES = 61


def registered(broker: int, metadata_version: int, finalized: int = 7) -> bytes:
    """A registration that supports metadata.version from `finalized` to `metadata_version`."""
    head = b"\1\0\3" + broker.to_bytes(4, "big") + b"\0" + bytes(16) + bytes(8) + b"\1"
    name = b"metadata.version"
    levels = finalized.to_bytes(2, "big") + metadata_version.to_bytes(2, "big")
    feature = bytes([len(name) + 1]) + name + levels + b"\0"
    other = b"\x06group" + bytes(2) + b"\0\1" + b"\0"
    return head + b"\3" + feature + other + b"\0\1\0\0"


def chosen(data: Path) -> str:
    return configured(data).kafka.version.name


def test_the_last_registration_of_this_broker_decides(tmp_path: Path) -> None:
    """Others may be ahead or behind, as in the middle of an upgrade."""
    values = [registered(1, 30), registered(2, 33), registered(1, 29), registered(3, 27)]
    data = cluster(tmp_path, topic("t", A), *values)
    assert chosen(data) == "4.2"
    assert "broker 1" in configured(data).kafka.why


def test_a_registration_without_versions_says_nothing(tmp_path: Path) -> None:
    bare = b"\1\0\3" + (1).to_bytes(4, "big") + b"\0" + bytes(16) + bytes(8) + b"\1\1\0\1\0\0"
    data = cluster(tmp_path, topic("t", A), registered(1, 29), bare)
    assert chosen(data) == "4.4"
    assert "unknown" in configured(data).kafka.why


def test_a_metadata_log_that_is_not_believed_does_not_decide(tmp_path: Path) -> None:
    """Of another cluster (S-2.11): the version is unknown, though a registration is there."""
    data = cluster(tmp_path, topic("t", A), registered(1, 29))
    damaged = bytearray(batches(0, topic("t", A), registered(1, 29)))
    damaged[-1] ^= 1
    log(data / METADATA_DIR, 0, bytes(damaged))
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":0}')
    assert chosen(data) == "4.4"


@pytest.mark.parametrize(("later_hours", "wanted"), [(23, "4.2"), (25, "4.4")])
def test_a_metadata_log_older_than_a_log_does_not_decide(
    tmp_path: Path, later_hours: int, wanted: str
) -> None:
    """S-2.10: an old copy, from before an upgrade maybe. One log shows it, for all of them."""
    data = cluster(tmp_path, topic("t", A), registered(1, 29))
    record = Record(0, METADATA_MS, None, registered(1, 29))
    old = batches(0, topic("t", A)) + encode_batch([record._replace(offset=1)])
    log(data / METADATA_DIR, 0, old)
    (data / "u-0").mkdir()
    written = Record(0, METADATA_MS + later_hours * 3_600_000, b"k", b"v")
    log(data / "u-0", 0, encode_batch([written]))
    [used] = api.plan([str(data)], api.Rules(all_log_dirs_given=True)).round_plan.kafka
    assert used.choice.version.name == wanted
    assert ("u-0 has records of" in used.choice.why) is (wanted == "4.4")
    [typed] = api.plan([str(data)], api.Rules(kafka="4.3")).round_plan.kafka
    assert typed.choice.version.name == "4.3"


def test_a_newer_broker_is_warned_of(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), registered(1, 40))
    found = api.plan([str(data)], api.Rules(all_log_dirs_given=True))
    assert [warning for warning in found.warnings if "newer than 4.4" in warning]


def test_the_option_comes_before_the_file_before_the_broker(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), registered(1, 29))
    toml = tmp_path / "own.toml"
    toml.write_text('[round]\nkafka = "4.1"\n')
    rules = api.Rules(config=str(toml))
    [by_file] = api.plan([str(data)], rules).round_plan.kafka
    assert (by_file.choice.version.name, str(toml) in by_file.choice.why) == ("4.1", True)
    rules = api.Rules(config=str(toml), kafka="4.3")
    [by_option] = api.plan([str(data)], rules).round_plan.kafka
    assert (by_option.choice.version.name, by_option.choice.why) == ("4.3", "--kafka says so")


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A))
    with pytest.raises(ConfigError, match=r"^rules\.kafka 4\.3\.1: expected one of 4\.1, 4\.2"):
        api.plan([str(data)], api.Rules(kafka="4.3.1"))
    toml = tmp_path / "own.toml"
    toml.write_text("[round]\nkafka = 4.3\n")
    with pytest.raises(ConfigError, match=r"kafka = 4\.3: expected one of"):
        load_config(str(toml))


def test_an_empty_name_in_the_file_says_nothing(tmp_path: Path) -> None:
    toml = tmp_path / "own.toml"
    toml.write_text('[round]\nkafka = ""\n')
    assert load_config(str(toml)).kafka == load_config(None).kafka


def test_report_terminal_and_page_say_which_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = cluster(tmp_path, topic("t", A), registered(1, 30))
    reports = [str(tmp_path / f"plan.{kind}") for kind in ("json", "html")]
    for report in reports:
        assert main(["plan", str(data), "--all-log-dirs-given", "--report", report]) in (0, 4)
    assert "As Kafka 4.3.1: broker 1" in capsys.readouterr().out
    document = json.loads(Path(reports[0]).read_text())
    [kafka] = document["kafka"]
    assert (kafka["version"], kafka["release"], kafka["log_dirs"]) == ("4.3", "4.3.1", [str(data)])
    assert "metadata.version 30" in kafka["why"]
    assert "As Kafka 4.3.1: broker 1" in Path(reports[1]).read_text()


def test_a_saved_plan_is_refused_for_another_version(tmp_path: Path) -> None:
    data = cluster(tmp_path, topic("t", A), config("cleanup.policy", "compact"), registered(1, 30))
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6})
    saved = str(tmp_path / "saved.plan")
    rules = api.Rules(as_of=NOW_MS, any_clock=True)
    api.plan([str(data)], rules, save=saved)
    options = api.RunOptions(plan=saved, in_process=True)
    with pytest.raises(ConfigError, match=r"with the answer of Kafka 4\.3, not of 4\.4"):
        api.run([], api.Rules(kafka="4.4"), options)
    values = (topic("t", A), config("cleanup.policy", "compact"), registered(1, 33))
    log(data / METADATA_DIR, 0, batches(0, *values))  # the broker was upgraded
    with pytest.raises(RefusedError, match=r"Kafka 4\.3, and .* is by now of Kafka 4\.4"):
        api.run([], options=options)


def last_batch_goes(root: Path, is_active_empty: bool) -> Path:
    """A log whose last batch in the round, of offset 2, has one record without a key."""
    first, last = Batch((Message(b"a", b"1", 1), Message(b"b", b"1", 1))), Message(None, b"1", 2)
    active = () if is_active_empty else (Batch((Message(b"z", b"1", 3),)),)
    build_log_dir(root, BuiltLog("t", 0, ((first,), (Batch((last,)),), active)))
    return root / "t-0"


@pytest.mark.parametrize(
    ("kafka", "is_active_empty", "stays"),
    [
        ("4.1", False, True),
        ("4.2", False, True),
        ("4.3", False, True),
        ("4.3", True, True),
        ("4.4", False, False),
        ("4.4", True, True),  # the batch ends at the high watermark
    ],
)
def test_the_empty_last_batch_stays_as_that_kafka_keeps_it(
    tmp_path: Path, kafka: str, is_active_empty: bool, stays: bool
) -> None:
    """V-2. The sizes are counted by hand: the first batch loses nothing."""
    partition = last_batch_goes(tmp_path / "data", is_active_empty)
    segment = partition / f"{0:020}.log"
    before = segment.stat().st_size
    rules = api.Rules(
        settings={"cleanup.policy": "compact"},
        include="t",
        as_of=NOW_MS,
        any_clock=True,
        kafka=kafka,
    )
    options = api.RunOptions(in_process=True, drop_null_keys=True)
    report = api.run([str(tmp_path / "data")], rules, options)
    assert [each.status for each in report.logs] == [api.LogStatus.CLEANED]
    assert segment.stat().st_size - before == (EMPTY_BATCH_BYTES if stays else 0)
    assert [use.choice.version.name for use in report.kafka] == [kafka]


# of a record with a key of one byte and a value of 100: attributes, two deltas, length of the key,
# the key, length of the value in two bytes, the value, number of headers
RECORD_BYTES = 1 + 2 + 1 + 1 + 2 + 100 + 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
@pytest.mark.parametrize(
    ("kafka", "limit", "is_obeyed"),
    [
        *((name, RECORD_BYTES, False) for name in ("4.1", "4.2", "4.3", "4.4")),
        *((name, RECORD_BYTES - 1, False) for name in ("4.1", "4.3")),
        *((name, RECORD_BYTES - 1, True) for name in ("4.2", "4.4")),
    ],
)
def test_a_record_larger_than_the_topic_allows_sets_its_log_aside(
    tmp_path: Path, codec: Codec, kafka: str, limit: int, is_obeyed: bool
) -> None:
    """V-4."""
    large = Batch((Message(b"a", b"1", 1), Message(b"b", b"v" * 100, 1)), codec)
    active = (Batch((Message(b"z", b"1", 3),)),)
    build_log_dir(tmp_path, BuiltLog("t", 0, ((large,), (large,), active)))
    before = state_of(tmp_path / "t-0")
    rules = api.Rules(
        topic_configs={"t": {"cleanup.policy": "compact", "max.decompressed.message.bytes": limit}},
        as_of=NOW_MS,
        any_clock=True,
        kafka=kafka,
    )
    for _ in range(2):  # it is not remembered: the limit may be another by the next run
        [found] = api.run([str(tmp_path)], rules, api.RunOptions(in_process=True)).logs
        if codec is Codec.NONE or not is_obeyed:
            assert (found.status, found.counts.dropped_superseded) == (api.LogStatus.CLEANED, 2)
            return
        assert found.status is api.LogStatus.SET_ASIDE
        assert found.reason_code == "record-too-large"
        assert f"record 1 of the batch has {RECORD_BYTES} bytes" in str(found.reason)
        assert state_of(tmp_path / "t-0") == before


def test_settings_of_a_later_kafka_are_shown_as_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [config("remote.copy.lag.ms", "5"), config("quite.new", "on"), config("b.new", "1")]
    compacted = config("cleanup.policy", "compact")
    data = cluster(tmp_path, topic("t", A), compacted, *settings, registered(1, 33))
    report = tmp_path / "configs.json"
    assert main(["configs", str(data), "--report", str(report)]) == 0
    out = capsys.readouterr().out
    assert "remote.copy.lag.ms  5                 the topic itself\n" in out
    assert (
        "quite.new                             the topic itself (unknown: its value is not shown)\n"
        in out
    )
    [found] = json.loads(report.read_text())["topics"]
    assert {name: each["is_known"] for name, each in found["settings"].items()} == {
        "b.new": False,
        "cleanup.policy": True,
        "quite.new": False,
        "remote.copy.lag.ms": True,
    }
    notice = "Settings that are not known here: b.new of t, quite.new of t"
    for words in (["plan", str(data)], ["explain", str(data), "t-0"]):
        main([*words, "--report", str(tmp_path / "r.json")])
        assert notice in json.loads((tmp_path / "r.json").read_text())["notices"]


@pytest.mark.parametrize(
    ("kafka", "note", "has_limit"),
    [
        ("4.1", " (no effect: Kafka 4.1.2 does not have it)", False),
        ("4.2", "", True),
        ("4.3", " (no effect: Kafka 4.3.1 does not have it)", False),
        ("4.4", "", True),
    ],
)
def test_the_limit_of_a_record_is_shown_with_what_it_means_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kafka: str, note: str, has_limit: bool
) -> None:
    """V-4: `configs` and `explain`."""
    data = cluster(tmp_path, topic("t", A), config("cleanup.policy", "compact"), registered(1, 33))
    limit = ("--kafka", kafka, "--set", "max.decompressed.message.bytes=1000")
    assert main(["configs", str(data), *limit, "--report", str(tmp_path / "c.json")]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert f"  max.decompressed.message.bytes  1000              --set{note}" in lines
    [found] = json.loads((tmp_path / "c.json").read_text())["topics"]
    notes = {name: each["note"] for name, each in found["settings"].items()}
    expected = f"Kafka {BY_NAME[kafka].release} does not have it" if note else None
    assert notes == {"cleanup.policy": None, "max.decompressed.message.bytes": expected}
    assert main(["explain", str(data), "t-0", *limit]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("bytes of a record 1000 max.decompressed.message.bytes" in said) is has_limit


def other_zstd(kafka: str) -> bool:
    return BY_NAME[kafka].codecs.zstd != ".".join(map(str, zstandard.ZSTD_VERSION))


@pytest.mark.parametrize("kafka", ["4.3", "4.4"])  # of these one has the installed libzstd
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_exact_bytes_are_refused_where_the_codec_is_of_another_build(
    tmp_path: Path, codec: Codec, kafka: str
) -> None:
    """V-5."""
    first = Batch((Message(b"a", b"1", 1), Message(b"b", b"1", 1)), codec)
    second = Batch((Message(b"a", b"1", 1),), codec)
    active = (Batch((Message(b"z", b"1", 3),)),)
    build_log_dir(tmp_path, BuiltLog("t", 0, ((first,), (second,), active)))
    before = state_of(tmp_path / "t-0")
    rules = api.Rules(
        topic_configs={"t": {"cleanup.policy": "compact"}},
        as_of=NOW_MS,
        any_clock=True,
        kafka=kafka,
    )
    is_other = codec is Codec.ZSTD and other_zstd(kafka)
    if is_other:
        with pytest.raises(RefusedError, match=r"--exact-bytes: 1 log .*t-0.*: zstd of another"):
            api.run([str(tmp_path)], rules, api.RunOptions(in_process=True, exact_bytes=True))
        assert state_of(tmp_path / "t-0") == before
    options = api.RunOptions(in_process=True, exact_bytes=not is_other)
    report = api.run([str(tmp_path)], rules, options)
    [found] = report.logs
    assert found.status is api.LogStatus.CLEANED
    notes = [note for note in found.notes if "other compressed bytes: zstd" in note]
    assert len(notes) == is_other
    assert report.warnings == ()  # so that --quiet says nothing


@pytest.mark.parametrize("kafka", ["4.3", "4.4"])  # of these one has the installed libzstd
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_a_plan_names_the_codec_of_another_build(
    tmp_path: Path, codec: Codec, kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """V-5: on the terminal, in its JSON, and in explain; a log of another codec has no note."""
    first = Batch((Message(b"a", b"1", 1), Message(b"b", b"1", 1)), codec)
    second = Batch((Message(b"a", b"1", 1),), codec)
    active = (Batch((Message(b"z", b"1", 3),), Codec.ZSTD),)
    build_log_dir(tmp_path / "data", BuiltLog("t", 0, ((first,), (second,), active)))
    words = [str(tmp_path / "data"), "--set", "cleanup.policy=compact", "--include", "t"]
    words += ["--kafka", kafka, "--as-of", str(NOW_MS), "--any-clock"]
    note = "the same records in other compressed bytes: zstd of another build: libzstd"
    is_other = codec is Codec.ZSTD and other_zstd(kafka)
    report = tmp_path / "plan.json"
    assert main(["plan", *words, "--report", str(report)]) == 0
    [planned] = json.loads(report.read_text())["logs"]
    assert [each for each in planned["notes"] if each.startswith(note)] == planned["notes"]
    assert len(planned["notes"]) == is_other
    assert (note in " ".join(capsys.readouterr().out.split())) is is_other
    log_dir, *options = [*words[:1], *words[5:]]
    options = ["--set", "cleanup.policy=compact", *options]
    assert main(["explain", log_dir, "t-0", *options]) == 0
    assert (note in " ".join(capsys.readouterr().out.split())) is is_other


@pytest.mark.parametrize("module", [scan, rewrite_task])
def test_exact_bytes_are_refused_where_an_executor_has_another_build(
    tmp_path: Path, module: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V-5: also where that executor reads none of it, and only rewrites."""
    codec = Codec.ZSTD
    first = Batch((Message(b"a", b"1", 1), Message(b"b", b"1", 1)), codec)
    second = Batch((Message(b"a", b"1", 1),), codec)
    active = (Batch((Message(b"z", b"1", 3),)),)
    build_log_dir(tmp_path, BuiltLog("t", 0, ((first,), (second,), active)))
    before = state_of(tmp_path / "t-0")
    [kafka] = [name for name in ("4.3", "4.4") if not other_zstd(name)]
    rules = api.Rules(
        topic_configs={"t": {"cleanup.policy": "compact"}},
        as_of=NOW_MS,
        any_clock=True,
        kafka=kafka,
    )
    old = CodecBuilds("1.4.0", installed_builds().cramjam)
    monkeypatch.setattr(module, "installed_builds", lambda: old)
    with pytest.raises(RefusedError, match=r"libzstd 1\.4\.0 is installed.*, on an executor"):
        api.run([str(tmp_path)], rules, api.RunOptions(in_process=True, exact_bytes=True))
    assert state_of(tmp_path / "t-0") == before
    [found] = api.run([str(tmp_path)], rules, api.RunOptions(in_process=True)).logs
    assert found.status is api.LogStatus.CLEANED
    notes = [note for note in found.notes if note.endswith(", on an executor")]
    assert len(notes) == (module is rewrite_task)  # who compressed anew


@pytest.mark.parametrize("kafka", ["4.2", "4.4"])
@pytest.mark.parametrize("limit", [107, 108])
def test_the_limit_is_that_of_kafka_itself(
    tmp_path: Path, kafka: str, limit: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """V-4: what the cleaners of 4.2.2 and 4.4.0 told of this script on both sides of the limit."""
    two = [{"k": "a", "v": "1", "ts": 1}, {"k": "b", "v": "v" * 100, "ts": 1}]
    append, roll = {"op": "append", "records": two}, {"op": "roll"}
    settings = {
        "cleanup.policy": "compact",
        "compression.type": "gzip",
        "min.cleanable.dirty.ratio": "0",
        "max.decompressed.message.bytes": str(limit),
    }
    lines = [
        *({"op": "settings", "follow_high_watermark": True}, {"op": "config", **settings}),
        *({"op": "open"}, append, roll, append, roll),
        *({"op": "append", "records": [{"k": "z", "v": "1", "ts": 1}]}, {"op": "clean"}),
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert replay([str(script), str(tmp_path / "log"), "--kafka", kafka]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    if limit < RECORD_BYTES:
        assert found["error"] == "InvalidRecordException"
        return
    counted = {name: found["result"][name] for name in ("messages_read", "messages_written")}
    assert counted == {"messages_read": 4, "messages_written": 2}
