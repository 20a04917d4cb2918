"""What a file has besides its bytes goes to the one that takes its place; by raw system calls."""

import errno
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from storage.files.file_attributes import ACCESS_LIST, attributes_of, give_attributes
from storage.files.local import LOCAL

NOBODY = 65534
ANY = 0xFFFFFFFF


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """linux/posix_acl_xattr.h: version 2, then tag, permissions and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# owner rw, user 77 r, group r, mask r, others nothing
ALLOWS_77 = access_list((1, 6, ANY), (2, 4, 77), (4, 4, ANY), (16, 4, ANY), (32, 0, ANY))


def made(path: Path, mode: int = 0o640) -> str:
    path.write_bytes(b"old")
    path.chmod(mode)
    return str(path)


def give(path: str, model: str) -> None:
    with open(path, "r+b") as out:
        give_attributes(out.fileno(), attributes_of(model))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_mode_user_attributes_and_access_list_go_along(tmp_path: Path, mode: int) -> None:
    model, path = made(tmp_path / "model", mode), made(tmp_path / "file", 0o777)
    os.setxattr(model, "user.backup", b"\0\xff")
    os.setxattr(model, "user.empty", b"")
    os.setxattr(model, ACCESS_LIST, ALLOWS_77)
    os.setxattr(path, "user.backup", b"another")
    os.setxattr(path, "user.stale", b"of nobody")
    give(path, model)
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == {
        "user.backup": b"\0\xff",
        "user.empty": b"",
        ACCESS_LIST: ALLOWS_77,
    }
    assert os.stat(path).st_mode == os.stat(model).st_mode


def test_what_a_directory_hands_down_does_not_stay(tmp_path: Path) -> None:
    """A default access list of the directory, where the model has been given none."""
    model = made(tmp_path / "model", 0o640)
    os.setxattr(tmp_path, "system.posix_acl_default", ALLOWS_77)
    path = made(tmp_path / "file")
    assert ACCESS_LIST in os.listxattr(path)
    give(path, model)
    assert os.listxattr(path) == [] and os.stat(path).st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["security.selinux", "security.SMACK64"])
def test_a_label_goes_along_where_the_system_permits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Made up: labels need their module."""
    model, path = made(tmp_path / "model"), made(tmp_path / "file")
    told: list[tuple[str, bytes]] = []
    monkeypatch.setattr(os, "listxattr", lambda file: [name] if file == model else [])
    monkeypatch.setattr(os, "getxattr", lambda _, which: which.encode())

    def set_label(_: int, which: str, value: bytes) -> None:
        told.append((which, value))
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "setxattr", set_label)
    give(path, model)
    assert told == [(name, name.encode())]


@pytest.mark.parametrize("name", ["security.ima", "security.evm", "trusted.overlay.origin"])
def test_what_stands_for_the_very_file_stays_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model = made(tmp_path / "model")
    monkeypatch.setattr(os, "listxattr", lambda _: [name])
    assert attributes_of(model).extended == ()


def test_an_attribute_that_cannot_be_kept_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = made(tmp_path / "model"), made(tmp_path / "file")
    os.setxattr(model, "user.backup", b"1")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "setxattr", full)
    told = r"extended attribute user\.backup cannot be kept: No space"
    with pytest.raises(OSError, match=told):
        give(path, model)


def test_a_file_system_without_extended_attributes_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(tmp_path / "model")

    def unsupported(_: object) -> list[str]:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", unsupported)
    assert attributes_of(model).extended == ()


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@as_root
def test_root_gives_a_file_to_its_owner(tmp_path: Path) -> None:
    model, path = made(tmp_path / "model"), made(tmp_path / "file")
    os.chown(model, 1234, 4321)
    os.chmod(model, 0o2750)  # giving away takes such bits
    give(path, model)
    found = os.stat(path)
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 4321, 0o2750)


AS_NOBODY = f"""
import os, sys
from storage.files.local import LOCAL
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
try:
    LOCAL.replace_file(sys.argv[1], b"new")
except PermissionError as error:
    print(error.filename, error.strerror)
"""


@as_root
def test_who_may_not_give_a_file_away_does_not_replace_it() -> None:
    """Not a silent change of owner: what is there stays."""
    with tempfile.TemporaryDirectory() as directory:  # pytest's own are within a private one
        os.chmod(directory, 0o777)
        path = made(Path(directory, "checkpoint"), 0o644)
        os.chown(path, 1234, 1234)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, check=False
        )
        told = f"{path}.tmp cannot be given to 1234:1234, the owner of the file that it replaces\n"
        assert done.stdout == told, done.stderr
        assert (Path(path).read_bytes(), os.stat(path).st_uid) == (b"old", 1234)
        assert os.listdir(directory) == ["checkpoint"]


def test_a_checkpoint_keeps_what_it_had(tmp_path: Path) -> None:
    path = made(tmp_path / "checkpoint", 0o604)
    os.setxattr(path, "user.backup", b"1")
    os.setxattr(path, ACCESS_LIST, ALLOWS_77)
    mode = os.stat(path).st_mode
    LOCAL.replace_file(path, b"new")
    assert os.stat(path).st_mode == mode
    assert sorted(os.listxattr(path)) == [ACCESS_LIST, "user.backup"]
