"""Each source of settings in each of its states, as docs/spec/sources.md has them: the tables are
read from the page, and each row is a log directory on which the commands themselves are run."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from compactor import api
from compactor.command_line.commands import app
from compactor.settings.sources import LOG_LAG_MS, SNAPSHOT_LAG_MS, SourceVerdict, State
from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import PartitionMetadata, encode_uuid
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.cluster_metadata import METADATA_DIR, read_cluster_metadata
from tests.compactor.log_dirs.test_directory_state import commands_of
from tests.compactor.settings.test_cluster_settings import registration
from tests.rule_numbers import SPEC
from tests.storage.log.test_cluster_metadata import (
    A,
    B,
    config,
    control,
    log,
    migration,
    partition,
    snapshot,
    topic,
)
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.log_builder import Batch, BuiltLog, Message, build_log_dir

pytestmark = pytest.mark.usefixtures("without_spark")

PAGE = SPEC / "sources.md"
ROW = re.compile(r'^\| <a id="s-[\d-]+"></a>(S-[\d.]+) \| (.+) \|$', re.MULTILINE)
TIME_MS = 1_780_000_000_000  # of the last record of the metadata log, and of the log
COMPACT, DELETE = config("cleanup.policy", "compact"), config("cleanup.policy", "delete")
OTHER = UUID(int=5 << 64 | 6)
AT_ONCE = config("min.cleanable.dirty.ratio", "0")
KNOWN = (registration(1, B), topic("t", A), partition(0, A), COMPACT, AT_ONCE)


class Told(NamedTuple):
    """What a row of the page says."""

    alone: str
    named: str


def rows() -> dict[str, Told]:
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    cells = {rule: rest.split(" | ") for rule, rest in found}
    return {rule: Told(alone, named) for rule, (_, alone, named, _) in cells.items()}


@dataclass
class Scene:
    """A log directory, and how it is spoken of."""

    data: Path
    words: list[str] = field(default_factory=list)  # after each command
    log_dirs: list[Path] = field(default_factory=list)  # beside it
    topics: str | None = None  # what --topic-configs says; None: nothing

    @property
    def metadata(self) -> Path:
        return self.data / METADATA_DIR


def written(directory: Path, *values: bytes, base: int = 0, time_ms: int = TIME_MS) -> bytes:
    data = b"".join(
        encode_batch([Record(base + n, time_ms, None, value)]) for n, value in enumerate(values)
    )
    log(directory, base, data)
    return data


def identify(
    log_dir: Path, version: int = 1, cluster: str = "c", directory: UUID = B, node: int = 1
) -> None:
    known = MetaProperties(version, cluster, node, encode_uuid(directory))
    meta_properties.write(str(log_dir), known)


def scene(root: Path, time_ms: int = TIME_MS) -> Scene:
    """All is whole: topic t is compacted, and its log was written when the metadata log was."""
    data = root / "data"
    message = Message(b"a", b"1", time_ms), Message(b"b", b"1", time_ms)
    build_log_dir(data, BuiltLog("t", 0, ((Batch(message),),) * 3))
    for path in (data / "t-0").glob("*.log"):
        os.utime(path, (time_ms / 1000, time_ms / 1000))
    partition_metadata.write(str(data / "t-0" / "partition.metadata"), PartitionMetadata(0, A))
    checkpoint.write(str(data / checkpoint.REPLICATION), {("t", 0): 6})
    identify(data)
    (data / METADATA_DIR).mkdir()
    written(data / METADATA_DIR, *KNOWN)
    return Scene(data)


def whole(root: Path) -> Scene:
    return scene(root)


def of_values(*values: bytes) -> Callable[[Path], Scene]:
    def made(root: Path) -> Scene:
        found = scene(root)
        written(found.metadata, *values)
        return found

    return made


def torn(root: Path) -> Scene:
    found = torn_after_stop(root)
    (found.data / CLEAN_SHUTDOWN).unlink()
    found.words = ["--recover-first"]
    return found


def torn_after_stop(root: Path) -> Scene:
    found = scene(root)
    data = written(found.metadata, *KNOWN, DELETE)
    log(found.metadata, 0, data[:-1])
    return found


def damaged(*values: bytes) -> Callable[[Path], Scene]:
    """One bit is flipped in the record that makes it a topic to be deleted from."""

    def made(root: Path) -> Scene:
        found = scene(root)
        before, data = written(found.metadata, *KNOWN), written(found.metadata, *KNOWN, *values)
        at = len(before) + 70
        log(found.metadata, 0, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        return found

    return made


def without_whole_batches(root: Path) -> Scene:
    """Cut between two batches; the file that the broker wrote when it stopped is still there."""
    found = scene(root)
    (found.metadata / f"{len(KNOWN) + 1:020}.snapshot").write_bytes(b"")
    return found


def no_bytes(root: Path) -> Scene:
    found = scene(root)
    log(found.metadata, 0, b"")
    return found


def no_file(root: Path) -> Scene:
    found = scene(root)
    shutil.rmtree(found.metadata)
    found.metadata.mkdir()
    return found


def never_used(root: Path) -> Scene:
    """As kafka-storage.sh format --standalone leaves it: a snapshot of control records."""
    found = no_file(root)
    data = control(0, 3) + control(1, 5) + control(2, 6) + control(3, 4)
    (found.metadata / f"{0:020}-{0:010}.checkpoint").write_bytes(data)
    return found


def unreadable(root: Path) -> Scene:
    found = no_file(root)
    (found.metadata / f"{0:020}.log").symlink_to(root / "nowhere")
    return found


def no_directory(root: Path) -> Scene:
    """A file has its name, as after a copy that went wrong."""
    found = scene(root)
    shutil.rmtree(found.metadata)
    found.metadata.write_bytes(b"")
    return found


def link_to_nowhere(root: Path) -> Scene:
    """Its directory is a link, and what it leads to is not mounted."""
    found = scene(root)
    found.metadata.rename(root / "metadata")
    found.metadata.symlink_to(root / "not-mounted")
    return found


def before_last_start(root: Path) -> Scene:
    found = scene(root)
    (found.data / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":5}')
    return found


def older(root: Path) -> Scene:
    return scene(root, TIME_MS + LOG_LAG_MS + 1000)


def of_another_cluster(root: Path) -> Scene:
    found = scene(root)
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    found.metadata.rename(elsewhere / METADATA_DIR)
    identify(elsewhere, cluster="another")
    found.words = ["--metadata", str(elsewhere)]
    return found


def formatted_again(root: Path) -> Scene:
    found = scene(root)
    identify(found.data, directory=OTHER)
    return found


def before_migration(root: Path) -> Scene:
    found = scene(root)
    identify(found.data, version=0)
    return found


def absent(root: Path) -> Scene:
    found = scene(root)
    shutil.rmtree(found.metadata)
    return found


def two_of_them(root: Path) -> Scene:
    found = scene(root)
    second = root / "second"
    (second / METADATA_DIR).mkdir(parents=True)
    identify(second, directory=OTHER)
    (second / CLEAN_SHUTDOWN).touch()
    found.log_dirs = [second]
    return found


def alone(*values: bytes, time_ms: int = TIME_MS) -> Callable[[Path], Scene]:
    """A snapshot of these, without the log."""

    def made(root: Path) -> Scene:
        found = no_file(root)
        snapshot(found.metadata, 9, *values, time_ms=time_ms)
        return found

    return made


def torn_snapshot(root: Path) -> Scene:
    found = scene(root)
    snapshot(found.metadata, 3, *KNOWN, whole=False)
    return found


def older_snapshot(root: Path) -> Scene:
    return alone(*KNOWN, time_ms=TIME_MS - SNAPSHOT_LAG_MS - 1)(root)


def no_identity(*values: bytes) -> Callable[[Path], Scene]:
    def made(root: Path) -> Scene:
        found = of_values(*KNOWN, *values)(root)
        (found.data / META_PROPERTIES).write_bytes(b"")
        return found

    return made


def torn_identity(content: str) -> Callable[[Path], Scene]:
    def made(root: Path) -> Scene:
        found = scene(root)
        (found.data / META_PROPERTIES).write_text(content)
        return found

    return made


def topic_note(content: bytes | None) -> Callable[[Path], Scene]:
    def made(root: Path) -> Scene:
        found = scene(root)
        path = found.data / "t-0" / "partition.metadata"
        path.unlink() if content is None else path.write_bytes(content)
        return found

    return made


def with_file(topics: str, *values: bytes) -> Callable[[Path], Scene]:
    """values: of the metadata log; none: there is no metadata log."""

    def made(root: Path) -> Scene:
        found = of_values(*values)(root) if values else absent(root)
        found.topics = topics
        return found

    return made


def typed(*values: bytes) -> Callable[[Path], Scene]:
    def made(root: Path) -> Scene:
        found = of_values(*values)(root)
        found.words = ["--include", "t", "--set", "cleanup.policy=compact"]
        return found

    return made


OF_NODE_2 = (registration(2, OTHER), *KNOWN[1:])
BROKERS_OWN = config("log.cleaner.delete.retention.ms", "5", "1", 4)
SAYS_COMPACT = '{"t": {"cleanup.policy": "compact"}}'
SCENES: dict[State, tuple[Callable[[Path], Scene], ...]] = {
    State.WHOLE: (whole,),
    State.TORN: (torn,),
    State.TORN_AFTER_STOP: (torn_after_stop,),
    State.DAMAGED_END: (damaged(DELETE), without_whole_batches),
    State.DAMAGED: (damaged(DELETE, config("x", "y")), of_values(*KNOWN, b"\1\4\0\2\2")),
    State.OF_LATER_KAFKA: (of_values(*KNOWN, b"\1\4\1"), of_values(*KNOWN, b"\2\4\0")),
    State.EMPTY: (no_bytes, no_file),
    State.NEVER_USED: (never_used,),
    State.UNREADABLE: (unreadable, no_directory, link_to_nowhere),
    State.BEFORE_LAST_START: (before_last_start,),
    State.OLDER: (older,),
    State.OTHER_CLUSTER: (of_another_cluster,),
    State.OTHER_NODE: (of_values(*OF_NODE_2),),
    State.FORMATTED_AGAIN: (formatted_again,),
    State.MIGRATING: (of_values(*KNOWN, migration(1)), of_values(*KNOWN, migration(2))),
    State.BEFORE_MIGRATION: (before_migration,),
    State.ABSENT: (absent,),
    State.TWO: (two_of_them,),
    State.TOPIC_DELETED: (of_values(registration(1, B), topic("o", A)),),
    State.SNAPSHOT: (alone(*KNOWN),),
    State.SNAPSHOT_TORN: (torn_snapshot,),
    State.SNAPSHOT_WITHOUT_TOPIC: (alone(registration(1, B), topic("o", A)),),
    State.SNAPSHOT_WITHOUT_PARTITION: (alone(*KNOWN[:2], *KNOWN[3:]),),
    State.SNAPSHOT_OF_ANOTHER_TOPIC: (
        alone(KNOWN[0], topic("t", OTHER), partition(0, OTHER), *KNOWN[3:]),
    ),
    State.SNAPSHOT_OLDER: (older_snapshot,),
    State.IDENTITY_WHOLE: (whole,),
    State.IDENTITY_UNKNOWN: (no_identity(),),
    State.IDENTITY_NEEDED: (no_identity(BROKERS_OWN),),
    State.IDENTITY_TORN: (torn_identity("version=1\nnode.id=1\n"), torn_identity("version=9\n")),
    State.DIRECTORIES_MISSING: (of_values(registration(1, B, OTHER), *KNOWN[1:]),),
    State.TOPIC_ID_WHOLE: (whole,),
    State.TOPIC_RECREATED: (of_values(KNOWN[0], topic("t", OTHER), *KNOWN[3:]),),
    State.TOPIC_ID_MISSING: (topic_note(None),),
    State.TOPIC_ID_BROKEN: (
        topic_note(b""),
        topic_note(b"version: 0\n"),
        topic_note(b"version: 0\ntopic_id: "),
    ),
    State.FILE_WHOLE: (with_file(SAYS_COMPACT),),
    State.FILE_CONTRADICTED: (with_file(SAYS_COMPACT, *KNOWN, DELETE),),
    State.FILE_BROKEN: (
        with_file(SAYS_COMPACT[:-1], *KNOWN),
        with_file("", *KNOWN),
        with_file("Dynamic configs for topic t are:\n  cleanup.policy=comp", *KNOWN),
    ),
    State.FILE_WITHOUT_TOPIC: (with_file("{}"),),
    State.TYPED: (typed(*KNOWN),),
    State.TYPED_AGAINST_DELETE: (typed(*KNOWN, DELETE),),
}
CASES = [
    pytest.param(state, make, id=f"{state.value.rule}-{number}")
    for state, made in SCENES.items()
    for number, make in enumerate(made)
]


READING_SOURCES = {
    *("plan", "run", "explain", "configs", "inspect", "recover", "doctor"),
    *("log roll", "log delete-records", "log truncate", "log append", "log abort", "log move"),
    *("log read", "log offsets"),
}
READING_NONE = {"verify", "dump", "undo", "report"}


def test_every_command_is_among_those_of_the_page() -> None:
    """A new one has to say whether it goes by these sources, and how."""
    every = commands_of(app)
    assert every == READING_SOURCES | READING_NONE
    page = PAGE.read_text(encoding="utf-8")
    of_log = {name for name in every if name.startswith("log ")}
    assert of_log <= READING_SOURCES  # "the commands of log"
    assert [name for name in every - of_log if f"`{name}`" not in page] == []


def test_the_page_has_the_table_of_the_module() -> None:
    told = {state.value.rule: state.value for state in State}
    assert rows() == {rule: Told(str(row.alone), str(row.named)) for rule, row in told.items()}
    assert set(SCENES) == set(State)


class Seen(NamedTuple):
    """What a command has made of the log."""

    words: str  # as the page has them
    exit_code: int


def seen(ended: Ended) -> Seen:
    document = ended.summary
    status = next((each for each in document.get("logs", []) if each["topic"] == "t"), None)
    if status is None:
        verdict = "the run is refused" if ended.code == 3 else "the command fails"
        return Seen(f"{verdict}: `{document['reason_code']}`", ended.code)
    if status["status"] in ("cleaned", "would-clean"):
        warned = ", with a warning" if document["warnings"] else ""
        return Seen(f"cleaned{warned}", ended.code)
    words = status["status"].replace("-", " ")
    return Seen(f"{words}: `{status['reason_code']}`", ended.code)


def run(found: Scene, topics: str | None, *more: str) -> Seen:
    words = ["run", found.data, *found.log_dirs, *given_to(found, topics), *more]
    return seen(run_command(*words, "--format", "json"))


def run_json(found: Scene, *more: str, command: str = "run") -> dict[str, Any]:
    """What a run, or a plan, ends with."""
    words = [command, found.data, *found.log_dirs, *found.words, *more, "--format", "json"]
    return run_command(*words).summary


def of_one_log(found: Scene) -> list[str]:
    """The options of a command that knows no choice of topics, and recovers nothing."""
    given = given_to(found, found.topics)
    return [word for word in given if word not in ("--recover-first", "--include", "t")]


def given_to(found: Scene, topics: str | None) -> list[str]:
    """The options of a command. topics: of --topic-configs; None: there is none."""
    if topics is None:
        return found.words
    path = found.data.parent / "topics.json"
    path.write_text(topics)
    return [*found.words, "--topic-configs", str(path)]


EXIT_CODES = {
    **{verdict.value[0]: {verdict.value[1]} for verdict in SourceVerdict},
}


@pytest.mark.parametrize(("state", "make"), CASES)
def test_a_run_does_as_the_row_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, make: Callable[[Path], Scene]
) -> None:
    use_local_rounds(monkeypatch, tmp_path / "work")
    told = rows()[state.value.rule]
    for name, topics, words in (
        ("alone", None, told.alone),
        ("named", SAYS_COMPACT, told.named),
    ):
        found = make(tmp_path / name)
        says = topics if found.topics is None else found.topics
        words_of_run, codes = words, EXIT_CODES[words.partition(":")[0]]
        dry = None if found.words == ["--recover-first"] else run(found, says, "--dry-run")
        done = run(found, says)
        assert (done.words, done.exit_code in codes) == (words_of_run, True), name
        if dry is not None and done.exit_code in (0, 4):
            assert dry == done, name


@pytest.mark.parametrize(
    ("make", "later_ms"), [(scene, LOG_LAG_MS + 1000), (alone(*KNOWN), 0)], ids=["later", "unknown"]
)
def test_one_log_shows_for_all_of_them_that_the_metadata_log_is_old(
    tmp_path: Path, make: Callable[[Path], Scene], later_ms: int
) -> None:
    """The settings of a log that nobody has written since may have changed, too."""
    found = make(tmp_path)
    message = Message(b"a", b"1", TIME_MS + later_ms)
    build_log_dir(tmp_path / "more", BuiltLog("u", 0, ((Batch((message,)),),) * 2))
    for path in (tmp_path / "more" / "u-0").glob("*.log"):
        os.utime(path, ((TIME_MS + later_ms) / 1000,) * 2)
    (tmp_path / "more" / "u-0").rename(found.data / "u-0")
    assert run(found, None, "--dry-run") == Seen("set aside: `metadata-contradicted`", 4)
    named = '{"t": {"cleanup.policy": "compact"}}'
    assert run(found, named, "--dry-run").words == "cleaned, with a warning"
    assert "u-0" in run_json(found, "--dry-run")["warnings"][0]


NOT_HIDDEN = (
    State.OTHER_CLUSTER,
    State.FORMATTED_AGAIN,
    State.MIGRATING,
    State.BEFORE_MIGRATION,
    State.IDENTITY_NEEDED,
    State.OLDER,
)


@pytest.mark.parametrize("state", NOT_HIDDEN)
def test_the_torn_end_of_a_killed_broker_hides_no_other_state(tmp_path: Path, state: State) -> None:
    found = SCENES[state][0](tmp_path)
    (path,) = tmp_path.glob(f"*/{METADATA_DIR}/*.log")
    end_offset = read_cluster_metadata(str(path.parent)).end_offset
    lost = encode_batch([Record(end_offset, TIME_MS, None, DELETE)])
    path.write_bytes(path.read_bytes() + lost[:-1])
    (found.data / CLEAN_SHUTDOWN).unlink()
    found.words = [*found.words, "--recover-first"]
    assert run(found, None, "--dry-run") == Seen(rows()[state.value.rule].alone, 4)
    ended = run_command("run", found.data, *found.words, "--dry-run", "--format", "json")
    assert any("inside" in each or "read up to" in each for each in ended.summary["warnings"])


GRADES = {"cleaned": "ok", "cleaned, with a warning": "warn", "set aside": "fail"}
GRADES |= {"passed over": "ok", "the command fails": "fail"}
NOT_SEEN = (State.OTHER_CLUSTER, State.DIRECTORIES_MISSING)  # by --metadata; it has another check


@pytest.mark.parametrize(("state", "make"), CASES)
def test_doctor_says_the_same(tmp_path: Path, state: State, make: Callable[[Path], Scene]) -> None:
    found = make(tmp_path)
    if state in NOT_SEEN or state.value.section > 5:  # which it is not told of
        return
    words, _, code = rows()[state.value.rule].alone.partition(": ")
    ended = run_command("doctor", found.data, *found.log_dirs, "--format", "json")
    checks = ended.summary["log_dirs"][0]["checks"]
    (grade,) = (each["grade"] for each in checks if each["subject"] == "settings of topics")
    assert grade == ("warn" if code == "`unknown-policy`" else GRADES[words])


@pytest.mark.parametrize(("state", "make"), CASES)
def test_explain_says_the_same(tmp_path: Path, state: State, make: Callable[[Path], Scene]) -> None:
    found = make(tmp_path)
    words = rows()[state.value.rule].alone
    if words.startswith("the run is refused"):  # `explain` speaks of the log, and says so there
        return
    ended = run_command(
        "explain", found.data, *found.log_dirs, "t-0", *of_one_log(found), "--format", "json"
    )
    document = ended.summary
    if words.startswith("the command fails"):
        assert (f"the command fails: `{document['reason_code']}`", ended.code > 0) == (words, True)
        return
    warned = ", with a warning" if document["warnings"] else ""
    said = f"{document['outcome'].replace('-', ' ')}: `{document['log_reason_code']}`"
    assert (f"cleaned{warned}" if document["outcome"] == "to-clean" else said) == words


@pytest.mark.parametrize(("state", "make"), CASES)
def test_commands_that_go_by_what_could_be_read_say_so(
    tmp_path: Path, state: State, make: Callable[[Path], Scene]
) -> None:
    """`configs` stands for those that read settings and judge no log."""
    found = make(tmp_path)
    words = rows()[state.value.rule].alone
    ended = run_command("configs", found.data, *found.log_dirs, *of_one_log(found))
    assert (ended.code > 0) is words.startswith("the command fails")
    is_said = words.endswith(("with a warning", "`metadata-damaged`", "`metadata-contradicted`"))
    assert ("warning" in ended.error) is is_said


@pytest.mark.parametrize(("state", "make"), CASES)
def test_records_are_deleted_by_command_only_where_the_policy_is_proven(
    tmp_path: Path, state: State, make: Callable[[Path], Scene]
) -> None:
    """The policy allows it here, or is not known: then a log without a metadata log has Kafka's."""
    found = make(tmp_path)
    if "--recover-first" in found.words or found.log_dirs:
        return
    words = rows()[state.value.rule].alone
    given = ["--only-replica", "--yes", "--before", "2", *of_one_log(found)]
    ended = run_command("log", "delete-records", found.data, "t-0", *given, "--format", "json")
    document = ended.summary
    code = words.partition(": ")[2].strip("`")
    if code in ("metadata-damaged", "metadata-contradicted", "settings-disagree"):
        assert (ended.code, document["reason_code"]) == (3, code)
        assert "Nothing was changed" in ended.error
    elif words.startswith("the command fails"):
        assert (ended.code > 0, document["reason_code"]) == (True, code)
    else:
        assert document["reason_code"] in ("policy-forbids", "done", "nothing-to-do")


@pytest.mark.parametrize("content", ["version=1\nnode.id=two\ncluster.id=c\n", "version=9\n"])
def test_a_torn_identity_is_a_warning_without_a_metadata_log_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """No policy hangs on it: only the check for directories that were not given is not made."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    found = torn_identity(content)(tmp_path)
    shutil.rmtree(found.metadata)
    assert run(found, SAYS_COMPACT, "--dry-run") == Seen("cleaned, with a warning", 0)
    doctor = run_command("doctor", found.data, "--format", "json").summary
    checks = {each["subject"]: each["grade"] for each in doctor["log_dirs"][0]["checks"]}
    assert (checks["log directory"], checks["a broker's start"]) == ("warn", "fail")
    assert doctor["run_would_end"]["exit_code"] == 0
    assert run(found, SAYS_COMPACT) == Seen("cleaned, with a warning", 0)


LOSING = (State.EMPTY, State.NEVER_USED, State.DAMAGED)


@pytest.mark.parametrize("state", LOSING)
@pytest.mark.parametrize("voters", [None, "1", "2"])
def test_no_start_is_recommended_that_makes_every_log_a_stray_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State, voters: str | None
) -> None:
    """Seen with a broker 4.3.1 that was its only controller; else it fetches what it lacks."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    found = SCENES[state][0](tmp_path)
    if voters is not None:
        state_of_quorum = f'{{"currentVoters":[{{"voterId":{voters}}}],"data_version":0}}'
        (found.metadata / "quorum-state").write_text(state_of_quorum)
    for words in (("run",), ("plan",), ("run", "--topic-configs", tmp_path / "t.json")):
        (tmp_path / "t.json").write_text(SAYS_COMPACT)
        ended = run_command(words[0], found.data, *words[1:])
        shown = " ".join(ended.out.replace("Start no broker", "").split())
        assert ("renames every log" in shown) is (voters != "2"), words
        if voters != "2":
            assert "tart the broker" not in shown, words


END_BYTES = len(control(0, 4))  # of a snapshot


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


LOST_ENDS: dict[str, Callable[[bytes], bytes]] = {
    "NULs": lambda data: bytes(len(data)),
    "a damaged batch, and no other": lambda data: flipped(data, len(data) - 1),
    "half a batch": lambda data: data[:-3],
    "a header of NULs": lambda data: bytes(70) + data[70:],
}


@pytest.mark.parametrize("name", LOST_ENDS)
@pytest.mark.parametrize("kept", [(), KNOWN[:1]], ids=["nothing", "a broker"])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("voters", ["1", "2"])
def test_no_start_is_recommended_where_a_damaged_end_names_the_logs(
    tmp_path: Path, name: str, kept: tuple[bytes, ...], is_clean: bool, voters: str
) -> None:
    """Seen with a broker 4.3.1: it cuts such an end off, and renames each log that is not named.

    With other voters it asks these.
    """
    found = scene(tmp_path)
    sound = encode_batch([Record(0, TIME_MS, None, kept[0])]) if kept else b""
    lost = [Record(len(kept) + n, TIME_MS, None, value) for n, value in enumerate(KNOWN)]
    log(found.metadata, 0, sound + LOST_ENDS[name](encode_batch(lost)))
    state_of_quorum = f'{{"currentVoters":[{{"voterId":{voters}}}],"data_version":0}}'
    (found.metadata / "quorum-state").write_text(state_of_quorum)
    if not is_clean:
        (found.data / ".kafka_cleanshutdown").unlink()
    if kept and name == "half a batch" and (voters == "2" or not is_clean):
        return  # what a broker that runs leaves; its log is named as a stray one
    for words in (("verify",), ("recover",), ("doctor",)):
        ended = run_command(words[0], found.data)
        shown = " ".join((ended.out + ended.error).split())
        assert ("-stray" in shown) is (voters == "1"), (words, shown)
        assert ("Start no broker" in shown or "start no broker" in shown) is (voters == "1")
        if voters == "1":
            assert "Next: start the broker" not in shown, (words, shown)


@pytest.mark.parametrize("state", [State.SNAPSHOT_WITHOUT_TOPIC, State.SNAPSHOT_WITHOUT_PARTITION])
@pytest.mark.parametrize("voters", ["1", "2"])
def test_no_start_is_recommended_on_a_snapshot_alone_that_does_not_name_a_log(
    tmp_path: Path, state: State, voters: str
) -> None:
    """Seen with a broker 4.3.1. What was created after the snapshot becomes a stray log."""
    found = SCENES[state][0](tmp_path)
    quorum = f'{{"currentVoters":[{{"voterId":{voters}}}],"data_version":0}}'
    (found.metadata / "quorum-state").write_text(quorum)
    outcomes = {each.outcome for each in api.start_problems([str(found.data)])}
    assert ("logs-stray" in outcomes) is (voters == "1")
    assert ("Next: start the broker" in run_command("recover", found.data).out) is (voters == "2")


TORN_SNAPSHOTS: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "whole": (lambda data: data, None),
    "without its end": (lambda data: data[:-END_BYTES], None),  # all that it says is there
    "its last setting gone": (lambda data: data[: -END_BYTES - 3], None),
    "its beginning, and a broker": (lambda data: data[: data.index(b"\1\2\0\2t")], "logs-stray"),
    "its beginning alone": (lambda data: data[:40], "broker-ends"),
    "no bytes": (lambda _: b"", "broker-ends"),
    "NULs": (lambda data: bytes(len(data)), "broker-ends"),
    "a damaged batch": (lambda data: flipped(data, len(data) - END_BYTES - 3), "broker-ends"),
}


@pytest.mark.parametrize("name", TORN_SNAPSHOTS)
@pytest.mark.parametrize("has_older", [True, False])
def test_no_start_is_recommended_with_a_torn_snapshot_that_a_broker_goes_by(
    tmp_path: Path, name: str, has_older: bool
) -> None:
    """Each seen with a broker 4.3.1, and that it starts well once the snapshot is removed."""
    change, outcome = TORN_SNAPSHOTS[name]
    found = scene(tmp_path) if has_older else no_file(tmp_path)
    snapshot(found.metadata, len(KNOWN), *KNOWN, time_ms=TIME_MS)
    if not has_older:
        written(found.metadata, registration(1, B), base=len(KNOWN))
    (path,) = found.metadata.glob("*.checkpoint")
    path.write_bytes(change(path.read_bytes()))
    problems = api.start_problems([str(found.data)])
    assert [each.outcome for each in problems] == ([outcome] if outcome else [])
    for command in ("recover", "verify", "plan", "doctor"):
        ended = run_command(command, found.data)
        shown = " ".join((ended.out + ended.error).split())
        assert ("tart the broker" not in shown) or outcome is None, (command, shown)
    if outcome and has_older:
        assert problems[0].command == f"rm -- {path}"
        path.unlink()
        assert "Next: start the broker" in run_command("recover", found.data).out
    elif outcome:
        assert problems[0].command is None
