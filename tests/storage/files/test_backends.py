"""Which backends logs may stand on, and the table of mounts: made-up and of this system."""

from pathlib import Path

import pytest

from storage.errors import UnsupportedBackendError
from storage.files import backends
from storage.files.backends import find_mount, mount_id_of, require_in_place
from storage.files.files import Mount
from storage.files.local import LOCAL
from tests.support.private_mounts import python_with_mounts


def test_a_local_path_or_url_is_taken_as_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert require_in_place("/var/logs", LOCAL) == "/var/logs"
    assert require_in_place("logs/../other", LOCAL) == str(tmp_path / "other")
    assert require_in_place("file:///var/logs", LOCAL) == "/var/logs"
    assert require_in_place("local:///var/logs/", LOCAL) == "/var/logs"


def test_what_is_above_a_link_is_what_the_system_takes_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two directories have the name `logs`; `cd link/..` leads to the one beside the target."""
    (tmp_path / "disk" / "kafka").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "kafka")
    monkeypatch.chdir(tmp_path)
    assert require_in_place("link/../logs", LOCAL) == str(tmp_path / "disk" / "logs")
    assert require_in_place("link", LOCAL) == str(tmp_path / "link")


@pytest.mark.parametrize(
    "url",
    ["s3://bucket/logs", "memory://logs", "hdfs://host/logs", "simplecache::s3://bucket/logs"],
)
def test_a_backend_without_the_promise_of_a_rename_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedBackendError, match="copy them to a disk first"):
        require_in_place(url, LOCAL)


def test_a_backend_nobody_knows_is_refused() -> None:
    with pytest.raises(UnsupportedBackendError, match="gopher:, which is not known here"):
        require_in_place("gopher://host/logs", LOCAL)


TABLE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
41 27 0:40 /export/kafka /data/kafka\\040logs rw,noatime shared:7 - nfs4 host:/export rw,vers=4.2,nolock
410 27 0:41 / /data/\\134tab\\011 ro - fuse.sshfs me@host: rw
50 27 0:42 / /cut
51 27 0:43 / /cut rw,relatime - ext4
52 27 0:44 / /data rw - - none rw
"""  # noqa: E501


@pytest.mark.parametrize(
    ("mount_id", "point", "kind", "option"),
    [
        (27, "/", "ext4", "discard"),
        (41, "/data/kafka logs", "nfs4", "nolock"),
        (41, "/data/kafka logs", "nfs4", "noatime"),
        (410, "/data/\\tab\t", "fuse.sshfs", "ro"),
    ],
)
def test_a_line_has_the_published_fields(mount_id: int, point: str, kind: str, option: str) -> None:
    """proc(5)."""
    mount = find_mount(TABLE, mount_id)
    assert mount is not None
    assert (mount.mount_point, mount.type) == (point, kind)
    assert option in mount.options


@pytest.mark.parametrize("mount_id", [4, 50, 51, 99])
def test_what_the_table_does_not_tell_is_not_known(mount_id: int) -> None:
    assert find_mount(TABLE, mount_id) is None


def test_a_type_may_be_any_word() -> None:
    assert find_mount(TABLE, 52) == Mount("/data", "-", frozenset({"rw"}))


def test_an_open_file_tells_its_mount() -> None:
    """proc(5): since Linux 3.15."""
    assert mount_id_of("pos:\t0\nflags:\t0100000\nmnt_id:\t410\nino:\t2\n") == 410
    assert mount_id_of("pos:\t0\nflags:\t0100000\n") is None


def test_a_mount_is_found_though_others_hide_what_lies_beneath(tmp_path: Path) -> None:
    """By the longest mount point, /D/inner would be taken for where /D/inner/x stands."""
    code = (
        "import os, sys\n"
        "from storage.files.backends import mount_of\n"
        "outer = sys.argv[1]\n"
        "os.makedirs(outer + '/inner/x')\n"
        "for path in (outer, outer + '/inner', outer + '/inner/x', '/proc'):\n"
        "    found = mount_of(path)\n"
        "    print(found.type, found.mount_point)\n"
    )
    outer = str(tmp_path)
    mounts = [
        f"-t ramfs none {outer} && mkdir {outer}/inner",
        f"-t ramfs none {outer}/inner",
        f"-t tmpfs none {outer}",
    ]
    done = python_with_mounts(mounts, code, outer)
    assert done.stdout.splitlines() == [f"tmpfs {outer}"] * 3 + ["proc /proc"], done.stderr


def test_without_a_table_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str, **_: object) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr("builtins.open", missing)
    assert backends.mount_of("/") is None
