"""Who reaches files past `Files`, and why: everything else works on the files that it is given.

A module that is new here needs a reason, and one that has no more need of it has to go.
"""

import ast
from collections.abc import Iterator

from tests.product_source import trees

CALLS = {
    *("access", "chmod", "chown", "fdopen", "fsync", "link", "listdir", "lstat", "makedirs"),
    *("mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir", "stat", "statvfs"),
    *("symlink", "truncate", "unlink", "utime"),
}
CALLS_OF_PATH = {"getmtime", "getsize", "realpath", "samefile"}
MACHINE = {
    "backends",
    "cloning",
    "file_attributes",
    "held_directories",
}

# by reason, by the package that the modules stand in
PLAIN: dict[str, dict[str, str]] = {
    "what keeps the promises of `Files` on this machine": {
        "storage.files": "backends cloning file_attributes held_directories local",
    },
    "locks of log directories": {
        "storage.log": "log_dir_lock log_manager",
    },
    "copies of a run's originals that cannot be linked": {
        "compactor.log_dirs": "kept_files",
    },
    "files that are in no log directory: caches, Java, the terminal": {
        "compactor": "airflow",
        "compactor.host": "java output",
        "storage": "user_home",
        "storage.kernels": "kernel",
    },
    "a second process, and the pipe that its half comes through": {
        "compactor.host": "second_process",
    },
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path, tree in trees().items():
        yield path.removesuffix(".py").replace("/", "."), tree


def is_plain(node: ast.AST) -> bool:
    """Whether it imports what is this machine's alone, or calls the system about a file."""
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names if not alias.name.endswith("Error")}
        if node.module == "storage.files":
            return bool(names & MACHINE)
        parent, _, last = (node.module or "").rpartition(".")
        if last == "backends":
            names &= {"mount_of"}  # what else is there works on the disk that it is given
        of_machine = parent == "storage.files" and last in MACHINE
        return bool(names) and (node.module == "pathlib" or of_machine)
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Name(id="open"):
            return True
        case ast.Attribute(value=ast.Name(id="shutil" | "tempfile")):
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr=attr):
            return attr in CALLS
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=attr):
            return attr in CALLS_OF_PATH
    return False


def named() -> set[str]:
    return {
        f"{package}.{name}"
        for of_reason in PLAIN.values()
        for package, names in of_reason.items()
        for name in names.split()
    }


def test_who_reaches_files_past_the_protocol_is_named_with_the_reason() -> None:
    plain = {name for name, tree in modules() if any(map(is_plain, ast.walk(tree)))}
    assert sorted(plain) == sorted(named())


def takers() -> dict[str, int]:
    """Functions that work on local files where none are given: the place of that argument."""
    found = {}
    for module, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names = [argument.arg for argument in node.args.args]
                defaults = dict(zip(names[::-1], node.args.defaults[::-1], strict=False))
                for name in {"files", "access", "disk"} & defaults.keys():
                    if ast.unparse(defaults[name]) == "LOCAL":
                        found[f"{module}.{node.name}"] = names.index(name)
    return found


def imported(tree: ast.Module) -> dict[str, str]:
    """What each name that a module imports stands for."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_nobody_else_forgets_to_hand_the_files_on() -> None:
    """By default they are local ones, for tests and whoever reads a file by the way."""
    places, forgotten = takers(), []
    assert {
        "storage.formats.checkpoint.read",
        "compactor.log_dirs.survey.survey_log_dirs",
    } <= places.keys()
    for module, tree in modules():
        names = imported(tree)
        for node in ast.walk(tree) if module not in named() else ():
            if isinstance(node, ast.Call):
                first, dot, rest = ast.unparse(node.func).partition(".")
                called = names.get(first, f"{module}.{first}") + dot + rest
                given = {keyword.arg for keyword in node.keywords} & {"files", "access", "disk"}
                given |= {arg for arg in map(ast.unparse, node.args) if arg.startswith("*")}
                if called in places and not given and len(node.args) <= places[called]:
                    forgotten.append(f"{module}, line {node.lineno}: {called}")
    assert forgotten == []
