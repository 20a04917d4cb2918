"""What the words of the command line may be; a refusal names the option and what it was given."""

import os
from pathlib import Path

import pytest

from compactor.command_line import arguments
from compactor.exit_codes import UsageError
from storage.errors import UnsupportedBackendError
from tests.compactor.small_log import build
from tests.support.private_mounts import python_with_mounts


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return build(tmp_path / "log").parent


def refusal_of_log_dir(*paths: Path) -> str:
    with pytest.raises(UsageError) as refused:
        arguments.log_dirs([str(path) for path in paths], to_write=True)
    return str(refused.value)


class TestLogDirs:
    def test_paths_become_absolute(self, log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(log_dir.parent)
        for given in ("log", "./log/", f"file://{log_dir}"):
            assert arguments.log_dirs([given], to_write=True) == (str(log_dir),)

    def test_meta_properties_or_a_partition_make_a_log_directory(self, log_dir: Path) -> None:
        """F-15.3, F-1.1."""
        (log_dir / "meta.properties").unlink()
        assert arguments.log_dirs([str(log_dir)], to_write=True)
        fresh = log_dir.parent / "fresh"
        fresh.mkdir()
        (fresh / "meta.properties").write_text("version=1\n")
        assert arguments.log_dirs([str(fresh)], to_write=True)

    def test_one_directory_mounted_at_two_places(self, log_dir: Path, tmp_path: Path) -> None:
        """No name tells; and a second lock of this process on one file would be given away."""
        again = tmp_path / "again"
        again.mkdir()
        code = (
            "import sys\nfrom compactor.command_line import arguments\n"
            "arguments.log_dirs(sys.argv[1:], to_write=True)\n"
        )
        done = python_with_mounts([f"--bind {log_dir} {again}"], code, log_dir, again)
        assert f"LOG_DIR {again}: given twice (also as {log_dir})" in done.stderr

    def test_one_that_is_missing(self, tmp_path: Path) -> None:
        path = tmp_path / "x"
        assert refusal_of_log_dir(path) == f"LOG_DIR {path}: No such file or directory"

    def test_a_file(self, log_dir: Path) -> None:
        path = log_dir / "meta.properties"
        assert refusal_of_log_dir(path) == f"LOG_DIR {path}: Not a directory"

    @pytest.mark.parametrize("inside", [[], ["X11-6"], ["X11-6/rgb.txt"], ["a/b.log"]])
    def test_another_directory(self, tmp_path: Path, inside: list[str]) -> None:
        for name in inside:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("")
        assert refusal_of_log_dir(tmp_path) == (
            f"LOG_DIR {tmp_path}: not a log directory: no meta.properties, "
            "and nothing named TOPIC-PARTITION in it"
        )

    def test_a_partition_directory(self, log_dir: Path) -> None:
        path = log_dir / "orders-0"
        expected = f"is a partition directory; give the log directory, {log_dir}"
        assert refusal_of_log_dir(path) == f"LOG_DIR {path}: {expected}"

    def test_the_same_one_twice(self, log_dir: Path) -> None:
        link = log_dir.parent / "link"
        link.symlink_to(log_dir)
        expected = f"LOG_DIR {link}: given twice (also as {log_dir})"
        assert refusal_of_log_dir(log_dir, link) == expected

    def test_an_object_store(self) -> None:
        with pytest.raises(UnsupportedBackendError, match="s3://bucket/x"):
            arguments.log_dirs(["s3://bucket/x"], to_write=True)

    def test_one_that_is_only_read_need_not_be_writable(
        self, log_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
        assert arguments.log_dirs([str(log_dir)], to_write=False)
        assert refusal_of_log_dir(log_dir).endswith(
            "no permission to write; --dry-run and plan only read"
        )


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        (None, None),
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.5", 500),
        ("1970-01-02", 86_400_000),
        ("9999-12-31T23:59:59.999Z", arguments.MAX_TIME_MS),
    ],
)
def test_a_time_is_epoch_milliseconds_or_iso_8601(
    text: str | None, expected_ms: int | None
) -> None:
    assert arguments.as_of_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "yesterday", "1.5", "2026-13-01", "12:00", "0x10", "١٢"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match=r"--as-of .*expected epoch milliseconds or ISO 8601"):
        arguments.as_of_ms(text)


@pytest.mark.parametrize("text", ["-1", "253402300800000", "9" * 40, "1969-12-31T23:59:59Z"])
def test_a_time_that_no_log_has(text: str) -> None:
    with pytest.raises(UsageError, match="outside of the years 1970 to 9999"):
        arguments.as_of_ms(text)


@pytest.mark.parametrize("text", ["a", "=1", " =1", ""])
def test_a_setting_has_a_name_and_a_value(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME=VALUE"):
        arguments.setting(text)


def test_a_setting_may_have_an_empty_value_or_an_equals_sign() -> None:
    assert arguments.setting("cleanup.policy=") == ("cleanup.policy", "")
    assert arguments.setting(" a = b=c ") == ("a", "b=c")


@pytest.mark.parametrize(
    "url",
    ["local", "local[2]", "local[*]", "local[4,3]", "spark://h:7077", "k8s://https://h", "yarn"],
)
def test_known_masters(url: str) -> None:
    assert arguments.master(url) == url


@pytest.mark.parametrize(
    "url", ["", "local[0]", "local[-1]", "local[two]", "local[99999]", "h:7077"]
)
def test_unknown_masters(url: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        arguments.master(url)


class TestReportFile:
    def test_json_is_known(self, tmp_path: Path) -> None:
        assert arguments.report_file(None) is None
        for name in ("r.json", "R.JSON"):
            assert arguments.report_file(str(tmp_path / name)) == str(tmp_path / name)

    @pytest.mark.parametrize("name", ["r", "r.txt", "r.html", "json", ".json.gz"])
    def test_an_unknown_extension(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match=r"unknown extension '.*', expected \.json"):
            arguments.report_file(str(tmp_path / name))

    def test_a_place_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there is no directory"):
            arguments.report_file(str(tmp_path / "x" / "r.json"))
        (tmp_path / "d.json").mkdir()
        with pytest.raises(UsageError, match="is a directory"):
            arguments.report_file(str(tmp_path / "d.json"))

    def test_a_place_without_permission(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        with pytest.raises(UsageError, match="no permission to write in"):
            arguments.report_file(str(tmp_path / "r.json"))


class TestWorkDir:
    def test_it_need_not_be_there_yet(self, tmp_path: Path) -> None:
        assert arguments.work_dir(None, []) is None
        assert arguments.work_dir(str(tmp_path / "a" / "b"), []) == str(tmp_path / "a" / "b")

    @pytest.mark.parametrize("below", ["", "x", "orders-0/x"])
    def test_never_in_a_log_directory(self, log_dir: Path, below: str) -> None:
        """F-1.4."""
        link = log_dir.parent / "link"
        link.symlink_to(log_dir)
        for path in (log_dir / below, link / below):
            with pytest.raises(UsageError, match="a broker that starts there would fail"):
                arguments.work_dir(str(path), [str(log_dir)])

    def test_beside_a_log_directory_of_a_similar_name(self, log_dir: Path) -> None:
        beside = f"{log_dir}-work"
        assert arguments.work_dir(beside, [str(log_dir)]) == beside

    def test_what_is_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="is not a directory"):
            arguments.work_dir(str(tmp_path / "file"), [])
        with pytest.raises(UsageError, match="a path that driver and executors all reach"):
            arguments.work_dir("hdfs://h/x", [])

    def test_without_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda _path, _mode: False)
        with pytest.raises(UsageError, match="no permission to write in"):
            arguments.work_dir(str(tmp_path / "new"), [])
