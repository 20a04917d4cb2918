"""The command `verify`: its words, what it says, how it ends."""

import json
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from compactor import api
from storage.formats import checkpoint, meta_properties
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from tests.compactor.plan_logs import Shape, build
from tests.support.local_command import run_command
from tests.support.reference_batch import split

OF_DIRECTORY = MetaProperties(1, "cluster", 1, "AAAAAAAAAAAAAAAAAAAAAQ")
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAg"


class TestVerify:
    def test_sound(self, log_dir: Path) -> None:
        ended = run_command("verify", log_dir, "orders-0")
        assert ended.code == 0
        assert ended.out.startswith("1 partition, 2 segments, 10 batches, 30 records, ")
        assert ended.summary["totals"]["findings"] == 0

    def test_damaged(self, log_dir: Path) -> None:
        path = log_dir / "orders-0" / "00000000000000000015.log"
        path.write_bytes(path.read_bytes()[:-1])
        ended = run_command("verify", log_dir)
        assert (ended.code, ended.summary["status"]) == (4, "partial")
        assert ended.out.startswith(f"{path}, byte ")
        assert ": 2 findings\n" in ended.out  # the torn end, and what a start makes of it
        document = json.loads(run_command("verify", log_dir, "--format", "json").out)
        assert document["findings"][0]["path"] == str(path)
        assert document["exit_code"] == 4

    def test_a_manifest_that_is_missing_is_noticed_before_all_is_read(
        self, log_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(api, "verify", lambda *_: pytest.fail("all was read"))
        ended = run_command("verify", log_dir, "--manifest")
        assert ended.code == 2
        assert f"--manifest: there is no {log_dir}/compactor-copy.json" in ended.error


class TestWhatNeedsNoOtherLog:
    """Where no data is damaged, nobody is told to fetch a log again."""

    def test_what_a_cleaning_left_is_settled_and_counts_as_there(self, log_dir: Path) -> None:
        path = log_dir / "orders-0" / "00000000000000000015.log"
        path.rename(f"{path}.swap")
        checkpoint.write(str(log_dir / checkpoint.REPLICATION), {("orders", 0): 30})
        ended = run_command("verify", log_dir)
        assert (ended.code, ended.summary["totals"]["findings"]) == (4, 1)
        assert f"{path}.swap, byte 0: a cleaning was cut short here" in ended.out
        assert f"\n  compactor recover {log_dir}\n" in ended.out
        assert "fetch" not in ended.out

    def test_a_name_that_no_file_has_is_moved_out(self, log_dir: Path) -> None:
        (log_dir / "orders-0" / "000000000000000000000.log").touch()  # of 21 digits
        ended = run_command("verify", log_dir)
        assert ended.code == 4
        assert "Otherwise move it out of the log directory" in ended.out
        assert "fetch" not in ended.out

    def test_a_link_is_never_moved_out_without_its_file(self, log_dir: Path) -> None:
        path = log_dir / "orders-0" / "00000000000000000000.log"
        path.rename(log_dir.parent / "theirs")
        path.symlink_to(log_dir.parent / "theirs")
        ended = run_command("verify", log_dir)
        assert "Next: if it is a link, put the file itself in its place." in ended.out
        assert "fetch" not in ended.out

    def test_damage_beside_it_is_fetched(self, log_dir: Path) -> None:
        path = log_dir / "orders-0" / "00000000000000000000.log"
        path.write_bytes(path.read_bytes()[:-1])
        (path.parent / "000000000000000000000.log").touch()
        ended = run_command("verify", log_dir)
        assert "Next: fetch each log with another finding again" in ended.out


class TestIndexesThatAStartRebuilds:
    """F-16.1: orders-0 has the segments 0 and 15; a start recovers each from the recovery point on,
    after an unclean shutdown, and any segment without an offset index."""

    FIRST, LAST = f"{0:020}", f"{15:020}"

    @staticmethod
    def spoil(path: Path) -> None:
        """An entry that leads to no batch."""
        path.write_bytes(b"\0\0\0\1\0\0\0\3")

    def test_after_an_unclean_shutdown_nothing_has_to_be_fetched(self, log_dir: Path) -> None:
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        path = log_dir / "orders-0" / f"{self.LAST}.index"
        self.spoil(path)
        ended = run_command("verify", log_dir)
        assert ended.code == 4
        assert "does not lead to the start of a batch; a broker that starts here rebuilds" in (
            ended.out
        )
        assert "Next: start the broker, if none is at work here. A start rebuilds 1 index" in (
            ended.out
        )
        assert "replica" not in ended.out
        run_command("recover", log_dir)  # does what a start does
        assert run_command("verify", log_dir).code == 0

    def test_below_the_recovery_point_it_is_not_rebuilt(self, log_dir: Path) -> None:
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        checkpoint.write(str(log_dir / checkpoint.RECOVERY_POINT), {("orders", 0): 15})
        self.spoil(log_dir / "orders-0" / f"{self.FIRST}.index")
        ended = run_command("verify", log_dir)
        assert "Next: remove 2 indexes while no broker is at work here" in ended.out
        assert "rebuild" not in ended.out
        self.spoil(log_dir / "orders-0" / f"{self.LAST}.index")
        ended = run_command("verify", log_dir)
        assert "A start rebuilds 1 index from the log" in ended.out
        assert "Next: remove 2 indexes while no broker is at work here" in ended.out

    def test_after_a_clean_shutdown_a_broker_trusts_it(self, log_dir: Path) -> None:
        (log_dir / ".kafka_cleanshutdown").touch()
        self.spoil(log_dir / "orders-0" / f"{self.LAST}.index")
        ended = run_command("verify", log_dir)
        assert "Next: remove 2 indexes while no broker is at work here" in ended.out
        (log_dir / "orders-0" / f"{self.LAST}.index").unlink()  # that makes it recover the segment
        ended = run_command("verify", log_dir)
        assert "a broker makes a new one when it starts" in ended.out
        assert "A start rebuilds 1 index from the log; no record is damaged." in ended.out
        assert "replica" not in ended.out

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    def test_what_a_broker_believes_is_removed_and_nothing_fetched(
        self, log_dir: Path, suffix: str
    ) -> None:
        """What is said is done here, and then a broker's loader makes them anew, at its start."""
        (log_dir / ".kafka_cleanshutdown").touch()
        log = log_dir / "orders-0"
        before = {path: path.read_bytes() for path in log.glob("*.log")}
        (log / f"{self.FIRST}{suffix}").write_bytes(
            bytes(12) if suffix == ".timeindex" else b"\0\0\0\1\0\0\0\3"
        )
        ended = run_command("verify", log_dir)
        assert ended.code == 4
        assert "replica" not in ended.out
        assert "Next: remove 2 indexes while no broker is at work here" in ended.out
        [command] = [line for line in ended.out.splitlines() if line.startswith("  rm ")]
        subprocess.run(shlex.split(command), check=True)
        assert run_command("recover", log_dir, "--as-kafka").code == 0
        assert run_command("verify", log_dir).code == 0
        assert {path: path.read_bytes() for path in log.glob("*.log")} == before

    def test_of_a_log_that_is_damaged_too_nothing_is_promised(self, log_dir: Path) -> None:
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        path = log_dir / "orders-0" / f"{self.FIRST}.log"
        path.write_bytes(path.read_bytes()[:70] + b"x" + path.read_bytes()[71:])
        self.spoil(log_dir / "orders-0" / f"{self.LAST}.index")
        ended = run_command("verify", log_dir)
        assert ended.code == 4
        assert "rebuilds it" not in ended.out


class TestSeveralDirectories:
    """orders-0 stands in one directory and payments-0 in the other; each has 3 segments."""

    @pytest.fixture
    def log_dirs(self, tmp_path: Path) -> tuple[Path, Path]:
        found = tmp_path / "disk-1", tmp_path / "disk-2"
        build(found[0], Shape("orders"), Shape("both"))
        build(found[1], Shape("payments"), Shape("both", 1))
        return found

    def test_all_are_checked(self, log_dirs: tuple[Path, Path]) -> None:
        ended = run_command("verify", *log_dirs)
        assert ended.code == 0, ended.out + ended.error
        assert ended.out.startswith("4 partitions, 12 segments, 12 batches, 24 records, ")
        assert ended.summary["log_dirs"] == [{"path": str(path)} for path in log_dirs]

    @pytest.mark.parametrize(
        ("words", "partitions"),
        [
            (["{0}", "orders-0", "{1}"], 1),
            (["{0}", "{1}", "payments-0"], 1),
            (["{0}", "{1}", "payments-0", "orders-0"], 2),
            (["{0}", "orders-0", "both-0"], 2),
        ],
    )
    def test_a_partition_of_one_of_them(
        self, log_dirs: tuple[Path, Path], words: list[str], partitions: int
    ) -> None:
        ended = run_command("verify", *(word.format(*log_dirs) for word in words))
        assert ended.code == 0, ended.out + ended.error
        assert ended.summary["totals"]["partitions"] == partitions

    def test_a_partition_of_none_of_them(self, log_dirs: tuple[Path, Path]) -> None:
        ended = run_command("verify", *log_dirs, "payment-0")
        assert ended.code == 2
        first, second = log_dirs
        problem = f"TOPIC-PARTITION payment-0: there is no such partition in {first} and {second}"
        assert f"{problem}; did you mean payments-0?" in ended.error

    def test_a_finding_is_of_its_directory(self, log_dirs: tuple[Path, Path]) -> None:
        path = log_dirs[1] / "payments-0" / "00000000000000000000.log"
        path.write_bytes(path.read_bytes()[:-1])
        ended = run_command("verify", *log_dirs)
        assert ended.code == 4
        assert ended.out.startswith(f"{path}, byte ")

    def test_one_log_in_two_directories_of_a_broker(self, log_dirs: tuple[Path, Path]) -> None:
        """A broker does not start there; no directory by itself shows it."""
        shutil.copytree(log_dirs[0] / "orders-0", log_dirs[1] / "orders-0")
        assert {run_command("verify", path).code for path in log_dirs} == {0}
        ended = run_command("verify", *log_dirs)
        assert ended.code == 4
        assert "orders-0" in ended.out

    def test_a_copy_is_of_one_directory(self, log_dirs: tuple[Path, Path]) -> None:
        ended = run_command("verify", *log_dirs, "--against", "/backup")
        assert ended.code == 2
        assert "--against /backup: is a copy of one log directory, and 2 were given" in ended.error


class TestVerifyAgainst:
    @pytest.fixture
    def copy(self, log_dir: Path) -> Path:
        return Path(shutil.copytree(log_dir, log_dir.with_name("before")))

    def test_the_same(self, log_dir: Path, copy: Path) -> None:
        ended = run_command("verify", log_dir, "--against", copy)
        assert ended.code == 0
        told = "0 partitions changed, 1 untouched (1 whole, 0 removed, 0 unexplained)"
        assert told in " ".join(ended.out.split())
        known = {"whole": 1, "removed": 0, "unexplained": 0}
        assert ended.summary["against"]["soundness"] == known
        assert ended.summary["against"]["untouched_partitions"] == 1

    @pytest.mark.parametrize(
        ("words", "told", "is_exact"),
        [
            (
                ["--as-of", "1704067200123"],
                "2024-01-01T00:00:00.123Z, taken as the clock of the cleaning ",
                True,
            ),
            ([], "Z, this machine's clock; --run-report or --as-of gives that of the cl", False),
        ],
    )
    def test_the_clock_is_shown(
        self,
        log_dir: Path,
        copy: Path,
        words: list[str],
        told: str,
        is_exact: bool,
    ) -> None:
        ended = run_command("verify", log_dir, "--against", copy, *words)
        shown = " ".join(ended.out.split())
        assert "delete horizons are checked against 2" in shown
        assert told in shown
        against = ended.summary["against"]
        assert against["as_of_is_clock_of_cleaning"] is is_exact
        if is_exact:
            assert against["as_of_ms"] == 1704067200123
            assert against["as_of"] == "2024-01-01T00:00:00.123Z"
        else:
            assert abs(against["as_of_ms"] / 1000 - time.time()) < 600

    @pytest.mark.parametrize(
        ("of_copy", "words", "problem"),
        [
            (OF_DIRECTORY._replace(directory_id=OTHER_ID), [], f"directory.id is {OTHER_ID}, "),
            (OF_DIRECTORY._replace(node_id=2), [], "node.id is 2, "),
            (OF_DIRECTORY._replace(node_id=2), ["orders-0"], "node.id is 2, "),
            (OF_DIRECTORY._replace(cluster_id="other"), [], "cluster.id is other, "),
        ],
    )
    def test_a_copy_of_another_directory_is_refused(
        self, log_dir: Path, copy: Path, of_copy: MetaProperties, words: list[str], problem: str
    ) -> None:
        """As where two copies are exchanged: each log of theirs would be reported as lost."""
        meta_properties.write(str(log_dir), OF_DIRECTORY)
        meta_properties.write(str(copy), of_copy)
        ended = run_command("verify", log_dir, *words, "--against", copy)
        assert ended.code == 2
        assert f"--against {copy}: is no copy of {log_dir}: its {problem}" in ended.error

    @pytest.mark.parametrize(
        ("of_copy", "words"),
        [
            (OF_DIRECTORY, []),
            (OF_DIRECTORY._replace(directory_id=None), []),  # written by an older broker
            (OF_DIRECTORY._replace(directory_id=OTHER_ID), ["orders-0"]),  # the log was moved
            (None, []),
        ],
    )
    def test_what_may_be_a_copy_is_compared(
        self, log_dir: Path, copy: Path, of_copy: MetaProperties | None, words: list[str]
    ) -> None:
        meta_properties.write(str(log_dir), OF_DIRECTORY)
        (copy / META_PROPERTIES).unlink(missing_ok=True)
        if of_copy is not None:
            meta_properties.write(str(copy), of_copy)
        ended = run_command("verify", log_dir, *words, "--against", copy)
        assert ended.code == 0, ended.out

    def test_a_batch_is_gone(self, log_dir: Path, copy: Path) -> None:
        """The second batch, offsets 3 to 5; offset 6 is a tombstone of the key of offset 2."""
        path = log_dir / "orders-0" / "00000000000000000000.log"
        batches = list(split(path.read_bytes()))
        path.write_bytes(b"".join([*batches[:1], *batches[2:]]))
        words = ["verify", log_dir, "orders-0", "--against", copy]
        ended = run_command(*words)
        assert (ended.code, ended.summary["status"]) == (4, "partial")
        assert ended.summary["against"]["gone"]["superseded"] == 3
        (path.parent / "00000000000000000015.log").write_bytes(b"")
        document = json.loads(run_command(*words, "--format", "json").out)
        assert "log end offset" in " ".join(f["problem"] for f in document["findings"])

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            (["--as-of", "5"], "--as-of 5: only with --against"),
            (["--against", "{log_dir}"], "is LOG_DIR itself"),
            (["--against", "/nowhere"], "--against /nowhere: No such file"),
            (["orders-7", "--against", "{copy}"], "there is no such partition in"),
        ],
    )
    def test_wrong_usage(self, log_dir: Path, copy: Path, words: list[str], problem: str) -> None:
        words = [word.format(log_dir=log_dir, copy=copy) for word in words]
        ended = run_command("verify", log_dir, *words)
        assert ended.code == 2
        assert problem in ended.error
