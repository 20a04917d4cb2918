"""Each command that a message prints is run on what caused the message, and does what that says.

With a plain name and with one that needs `--` and quotes; after a clean shutdown and without one.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compactor.host.printable import shell_word
from compactor.log_dirs.directory_state import UNFINISHED
from demo.new_log_dir import new_log_dir
from storage.codecs.compression import Codec
from storage.file_names import DELETED, LOG, SNAPSHOT, file_name
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.record import Record
from storage.formats.record_batch import BatchOptions, encode_batch
from storage.log.validation import AppendRequest
from tests.compactor.plan_logs import Shape, build, clean_up_to
from tests.support.local_command import Ended, run_command, use_local_rounds
from tests.support.made_log import keyed, make_partition
from tests.support.printed_commands import collected

CHANGING = ("log roll", "log abort")  # which ask


class Place(NamedTuple):
    """Where a case is, and what it is called."""

    root: Path
    topic: str
    is_clean: bool

    @property
    def log_dir(self) -> Path:
        return self.root / "it's a\nb"

    @property
    def name(self) -> str:
        return f"{self.topic}-0"

    @property
    def log(self) -> Path:
        return self.log_dir / self.name

    @property
    def first_log(self) -> Path:
        return self.log / file_name(0, LOG)

    def shape(self, **more: Any) -> Shape:
        return Shape(self.topic, **more)


Does = Callable[[Place, Ended], None]


class Case(NamedTuple):
    """A directory, what is typed about it, and what each command does that is printed then.

    typed: {dir}, {log}, {root} and {settings} stand for names. does: by command; None: of a program
    that is not ours, or of Kafka.
    """

    make: Callable[[Place], object]
    typed: str
    does: Mapping[str, Does | None]
    does_unclean: Mapping[str, Does | None] | None = None  # None: likewise
    policy: str = "compact"


# ---- directories --------------------------------------------------------------------------------


def dirty(place: Place) -> None:
    build(place.log_dir, place.shape())


def not_dirty_enough(place: Place) -> None:
    dirty(place)
    clean_up_to(place.log_dir, (place.topic, 0, 2))


def clean(place: Place) -> None:
    dirty(place)
    clean_up_to(place.log_dir, (place.topic, 0, 4))


def two_clean(place: Place) -> None:
    build(place.log_dir, place.shape(), place.shape(partition=1))
    clean_up_to(place.log_dir, (place.topic, 0, 4), (place.topic, 1, 4))


def one_segment(place: Place) -> None:
    build(place.log_dir, place.shape(segments=1))


def with_open_transaction(place: Place) -> None:
    """Of producer 7, from offset 0; the segment behind it is active."""
    records = [Record(offset, 1000, b"a", b"1") for offset in range(2)]
    options = BatchOptions(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    place.root.mkdir()
    with new_log_dir(str(place.log_dir), "built") as manager:
        log = manager.create((place.topic, 0))
        data = encode_batch(records, Codec.NONE, options)
        log.append_as_leader(data, AppendRequest(leader_epoch=0))
        log.roll()


def cut_short(place: Place) -> None:
    dirty(place)
    Path(f"{place.first_log}.swap").write_bytes(b"")


def damaged(place: Place) -> None:
    dirty(place)
    data = bytearray(place.first_log.read_bytes())
    data[-1] ^= 1
    place.first_log.write_bytes(data)


def in_two_directories(place: Place) -> None:
    dirty(place)
    build(place.root / "2", place.shape())


def without_keys(place: Place) -> None:
    segments = {0: [keyed(0, "..a")], 3: [keyed(3, "..a")], 6: [keyed(6, "b")]}
    make_partition(place.log_dir, segments, place.name)


def segment_to_be_deleted(place: Place) -> None:
    """One in the middle was renamed, as by a hand that slipped, and nothing is lost yet."""
    segments = {0: [keyed(0, "aba")], 3: [keyed(3, "cd")], 5: [keyed(5, "e")]}
    log = make_partition(place.log_dir, segments, place.name)
    for path in log.glob(file_name(3, "*")):
        path.rename(f"{path}{DELETED}")
    for path in log.glob(f"*{SNAPSHOT}"):  # they are made up
        path.unlink()


# ---- what commands do ---------------------------------------------------------------------------


def malformed_epochs(place: Place) -> None:
    dirty(place)
    (place.log / LEADER_EPOCH_CHECKPOINT).write_bytes(b"0\n9\n")


def malformed_checkpoint(place: Place) -> None:
    dirty(place)
    (place.log_dir / checkpoint.RECOVERY_POINT).write_bytes(b"0\n9\n")


def well(_: Place, ended: Ended) -> None:
    assert ended.code == 0, ended


def mends_epochs(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert not (place.log / LEADER_EPOCH_CHECKPOINT).exists()


def brings_the_segment_back(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert (place.log / file_name(3, LOG)).exists()
    assert "missing behind" not in run_command("verify", place.log_dir).out


def empties_it(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert (place.log_dir / checkpoint.RECOVERY_POINT).stat().st_size == 0


def finds_damage(place: Place, ended: Ended) -> None:
    assert ended.code == 4, ended
    assert place.first_log.name in ended.out + ended.error


def would_clean(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert ended.summary["totals"]["logs"]["would-clean"] == 1
    assert ended.summary["changed"] is False


def cleans(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert ended.summary["totals"]["logs"]["cleaned"] == 1


def rolls(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert explained(place)["log_reason_code"] not in ("nothing-new", "active-segment")


def aborts(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert explained(place)["log_reason_code"] != "open-transaction"


def settles(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert not [*place.log.glob("*.swap")]


def shows_offsets(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert "log end" in ended.out


def names_the_way_out(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert "log abort" in ended.out and "--producer-id 7" in ended.out


def discards(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert not [*(place.root / "kept").glob("*/*")]


def brings_back(place: Place, ended: Ended) -> None:
    well(place, ended)
    assert (place.log / file_name(2, LOG)).exists()


def removes(place: Place, ended: Ended) -> None:
    assert ended.code == 0
    assert not (place.root / "copy").exists()


def explained(place: Place) -> dict[str, Any]:
    settings = ("--topic-configs", place.root / "settings.json", "--any-clock")
    words = ("explain", *settings, "--format", "json", "--", place.log_dir, place.name)
    found: dict[str, Any] = json.loads(run_command(*words).out)
    return found


def unfinished_copy(place: Place) -> None:
    dirty(place)
    (place.root / "copy" / UNFINISHED).mkdir(parents=True)


REFUSED: Mapping[str, Does | None] = {"recover": well}  # after an unclean shutdown
ROUND = "--topic-configs {settings} --any-clock --assume-fully-replicated"
ON_LOG = "--topic-configs {settings}"
CASES = {
    "plan": Case(dirty, f"plan {{dir}} {ROUND}", {"run": would_clean}, REFUSED),
    "plan, saved": Case(
        dirty,
        f"plan {{dir}} {ROUND} --save {{root}}/plan.json",
        {"run": cleans},
        {"run": cleans, "recover": None},
    ),
    "plan of clean logs": Case(
        two_clean,
        f"plan {{dir}} {ROUND} --top 1",
        {"explain": well},
        {"explain": well, "recover": well},
    ),
    "run": Case(dirty, f"run {{dir}} {ROUND}", {"verify": well}, REFUSED),
    "run on damage": Case(damaged, f"run {{dir}} {ROUND}", {"verify": finds_damage}, REFUSED),
    "run that keeps originals": Case(
        dirty,
        f"run {{dir}} {ROUND} --keep-originals {{root}}/kept",
        {"verify": well, "undo": brings_back, "undo --discard": discards},
        REFUSED,
    ),
    "run into a copy": Case(dirty, f"run {{dir}} {ROUND} --output {{root}}/copy", {"verify": well}),
    "run into an unfinished copy": Case(
        unfinished_copy, f"run {{dir}} {ROUND} --output {{root}}/copy", {"rm": removes}
    ),
    "explain below the ratio": Case(
        not_dirty_enough,
        f"explain {ROUND} -- {{dir}} {{log}}",
        {"run": cleans, "kafka-configs.sh": None},
    ),
    "explain an open transaction": Case(
        with_open_transaction,
        f"explain {ROUND} -- {{dir}} {{log}}",
        {"log abort": aborts, "kafka-transactions.sh": None},
    ),
    "explain a clean log": Case(clean, f"explain {ROUND} -- {{dir}} {{log}}", {"log roll": rolls}),
    "explain one segment": Case(
        one_segment,
        f"explain {ROUND} -- {{dir}} {{log}}",
        {"log roll": rolls, "kafka-configs.sh": None},
    ),
    "explain what was cut short": Case(
        cut_short, f"explain {ROUND} -- {{dir}} {{log}}", {"recover": settles}
    ),
    "explain two directories": Case(
        in_two_directories,
        f"explain {ROUND} -- {{dir}} {{root}}/2 {{log}}",
        {"log offsets": shows_offsets},
    ),
    "explain a log of another policy": Case(
        dirty,
        f"explain {ROUND} -- {{dir}} {{log}}",
        {"kafka-configs.sh": None},
        policy="delete",
    ),
    "explain without settings": Case(
        dirty, "explain --any-clock -- {dir} {log}", {"kafka-configs.sh": None}
    ),
    "page of logs without keys": Case(
        without_keys,
        f"run {{dir}} {ROUND} --report {{root}}/page.html",
        {"log read": well},
        REFUSED,
    ),
    "recover": Case(dirty, f"recover {{dir}} {ON_LOG}", {"run": well}),
    "log roll": Case(
        one_segment, f"log roll --yes {ON_LOG} -- {{dir}} {{log}}", {"run": well}, REFUSED
    ),
    "log abort": Case(
        with_open_transaction,
        f"log abort --yes --only-replica --producer-id 7 {ON_LOG} -- {{dir}} {{log}}",
        {"run": well},
        REFUSED,
    ),
    "log offsets of an open transaction": Case(
        with_open_transaction,
        f"log offsets {ON_LOG} -- {{dir}} {{log}}",
        {"explain": names_the_way_out},
    ),
    "inspect an open transaction": Case(
        with_open_transaction, f"inspect {{dir}} {ON_LOG}", {"explain": names_the_way_out}
    ),
    "verify of what was cut short": Case(cut_short, "verify {dir}", {"recover": settles}),
    "doctor": Case(
        dirty,
        "doctor {dir}",
        {"kafka-configs.sh": None},
        {"recover": well, "kafka-configs.sh": None},
    ),
    "verify of a segment that a start would remove": Case(
        segment_to_be_deleted, "verify {dir}", {"mv": brings_the_segment_back}
    ),
    "doctor of malformed leader epochs": Case(
        malformed_epochs,
        "doctor {dir}",
        {"rm": mends_epochs, "kafka-configs.sh": None},
        {"rm": mends_epochs, "recover": None, "kafka-configs.sh": None},
    ),
    "doctor of a malformed checkpoint": Case(
        malformed_checkpoint,
        "doctor {dir}",
        {"truncate": empties_it, "kafka-configs.sh": None},
        {"truncate": empties_it, "recover": None, "kafka-configs.sh": None},
    ),
    "configs that nobody knows": Case(dirty, "configs {dir}", {"kafka-configs.sh": None}),
}
PLACES = [("t", True), ("-foo", True), ("-foo", False)]


def typed(place: Place, case: Case) -> Ended:
    names = {
        "dir": place.log_dir,
        "log": place.name,
        "root": place.root,
        "settings": place.root / "settings.json",
    }
    return run_command(*(word.format(**names) for word in case.typed.split()))


def name_of(words: tuple[str, ...]) -> str:
    if words[0] != "compactor":
        return words[0]
    name = " ".join(words[1:3]) if words[1] == "log" else words[1]
    return f"{name} --discard" if "--discard" in words else name


def followed(words: tuple[str, ...]) -> Ended:
    """What comes of a command as a shell takes it."""
    text = " ".join(map(shell_word, words))
    split = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True, text=True
    )
    assert split.stdout.split("\0")[:-1] == [*words]
    if words[0] != "compactor":
        done = subprocess.run(words, check=False)
        return Ended(done.returncode, "", "")
    given = [*words[1:]]
    sure = ["--yes"] if name_of(words) in CHANGING else []  # what a person would type
    at = given.index("--") if "--" in given else len(given)
    return run_command(*given[:at], *sure, *given[at:])


@pytest.mark.parametrize(("topic", "is_clean"), PLACES, ids=["plain", "quoted", "unclean"])
@pytest.mark.parametrize("name", CASES)
def test_a_command_does_what_its_message_says(
    name: str, topic: str, is_clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    does = case.does if is_clean or case.does_unclean is None else case.does_unclean
    use_local_rounds(monkeypatch, tmp_path / "work")
    place = Place(tmp_path / "here", topic, is_clean)
    case.make(place)
    settings = {"cleanup.policy": case.policy}
    (place.root / "settings.json").write_text(json.dumps({topic: settings}))
    if not is_clean:
        (place.log_dir / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    with collected() as found:
        ended = typed(place, case)
    printed = list(dict.fromkeys(found))
    assert {name_of(words) for words in printed} == does.keys(), (ended, printed)
    page = place.root / "page.html"
    shown = ended.out + ended.error if not page.exists() else page.read_text()
    for words in printed:
        if not page.exists():
            assert " ".join(map(shell_word, words)) in shown, shown
            assert str(place.log_dir) not in shown  # whose name has two lines
        does_it = does[name_of(words)]
        if does_it is None:
            continue
        subprocess.run(["cp", "-a", place.root, tmp_path / "copy"], check=True)
        does_it(place, followed(words))
        shutil.rmtree(place.root)
        os.rename(tmp_path / "copy", place.root)
