"""Owner, mode, time and extended attributes of a file, for the one that takes its place.

A broker seldom runs as the user who runs this, and must find its files as it left them. Of extended
attributes go along: the user's own (`user.*`), access lists, and labels of security modules, these
where the system permits; what stands for the very file (`security.ima` and the like) does not.
"""

import errno
import os
import stat

from storage.files.files import FileAttributes

ACCESS_LIST = "system.posix_acl_access"
_LABELS = "security.selinux", "security.SMACK64"
_UNSUPPORTED = errno.EOPNOTSUPP, errno.ENOSYS


def attributes_of(file: str | int) -> FileAttributes:
    """Return the attributes of a path, or of an open file. A link is followed."""
    found = os.stat(file)
    names = sorted(filter(_goes_along, _list(file)))
    extended = tuple((name, os.getxattr(file, name)) for name in names)
    return FileAttributes(
        found.st_uid, found.st_gid, found.st_mode & 0o7777, found.st_mtime_ns, extended
    )


def require_replaceable(path: str) -> None:
    """Raise the OSError with which a file could not be replaced by this user. Writes nothing.

    A limit of the system that shows only when it is tried (a full disk, a file that is marked as
    not to be changed) is not seen.
    """
    directory = os.path.dirname(path) or "."
    around = os.stat(directory)
    if not os.access(directory, os.W_OK | os.X_OK):
        read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
        raise _error(errno.EROFS if read_only else errno.EACCES, directory)
    for name in (path, f"{path}.tmp"):
        try:
            found = os.lstat(name)
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(found.st_mode):
            raise _error(errno.EISDIR, name)
        own = os.geteuid()
        if around.st_mode & stat.S_ISVTX and own not in (0, found.st_uid, around.st_uid):
            raise _error(errno.EPERM, name)
        if name == path and not may_give(found.st_uid, found.st_gid):
            raise _error(errno.EPERM, path)


def may_give(uid: int, gid: int) -> bool:
    """Whether this user can make files that belong to these."""
    own = os.geteuid()
    return own == 0 or (own == uid and gid in (os.getegid(), *os.getgroups()))


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def give_attributes(descriptor: int, model: FileAttributes) -> None:
    """Make an open file that we made like the model, but for its time.

    Raise PermissionError where only a privileged user may: a file that does not belong to whom it
    belonged to is not its replacement.
    """
    own = attributes_of(descriptor)
    _give_extended(descriptor, dict(own.extended), dict(model.extended))
    if (own.uid, own.gid) != (model.uid, model.gid):
        try:
            os.fchown(descriptor, model.uid, model.gid)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EINVAL):  # EINVAL: no such user down here
                raise
            owner = f"{model.uid}:{model.gid}"
            problem = f"cannot be given to {owner}, the owner of the file that it replaces"
            raise PermissionError(errno.EPERM, problem) from error
    os.fchmod(descriptor, model.mode)


def _give_extended(descriptor: int, own: dict[str, bytes], model: dict[str, bytes]) -> None:
    for name in own.keys() - model.keys() - {*_LABELS}:  # an access list that the directory gave it
        os.removexattr(descriptor, name)
    for name, value in model.items():
        if own.get(name) == value:
            continue
        try:
            os.setxattr(descriptor, name, value)
        except OSError as error:
            if name not in _LABELS:
                problem = f"extended attribute {name} cannot be kept: {error.strerror}"
                raise OSError(error.errno, problem) from error


def _goes_along(name: str) -> bool:
    return name.startswith("user.") or name == ACCESS_LIST or name in _LABELS


def _list(file: str | int) -> list[str]:
    try:
        return os.listxattr(file)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return []
        raise
