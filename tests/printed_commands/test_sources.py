"""No message has a command that is written by hand: all are made by `host/shell_commands.py`."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compactor.command_line.commands import app
from compactor.host import shell_commands
from tests.product_source import tree_of
from tests.support.printed_commands import require_right

PROJECT = Path(__file__).parents[2]
MODULE = Path(shell_commands.__file__)
SOURCES = sorted(
    path
    for room in ("compactor", "cleaner_jobs", "storage")
    for path in (PROJECT / room).rglob("*.py")
)
COMMANDS = (
    *("plan", "run", "recover", "undo", "explain", "configs", "inspect", "doctor", "report"),
    *("dump", "verify", "log"),
)
BY_HAND = re.compile(
    rf"\bcompactor (?:{'|'.join(COMMANDS)}|--[a-z]|\{{|…)"
    r"|\bkafka-[a-z-]+\.sh\b|\bkafka-[a-z-]+ --|\bsudo\b|\bsetpriv\b"
    r"|\b(?:rm|mv|cp|ln|chown|chmod|mount|umount|kill|truncate) -|\bprintf '"
    r"|\b(?:chown|chmod|mv|cp) [./{]"
)
NOT_COMMANDS = {  # names with a version or of a Spark job, and what prints a file that was given
    *(
        "compactor {}, Python {}, {} {}, {}",
        "compactor {} {}: {}{}",
        "compactor doctor",
        "compactor {}",
    ),
    "neither JSON nor what kafka-configs or kafka-topics --describe prints",
}
OF_DIRECTORIES = ("report", "configs", "doctor", "plan", "run", "recover", "verify", "undo", "dump")
NEEDED = {
    "log abort": ("--producer-id", "7"),
    "log append": ("--records", "/records"),
    "log delete-records": ("--before", "7"),
    "log truncate": ("--to", "7"),
}
EXAMPLES = re.compile(r"\[dim\](.*?)\[/\]", re.S)  # of docstrings that are the help
# what makes words of a command; the first argument of most is the name of one of ours
MAKERS = ("compactor", "about_file", "with_all_given", "named", "of_log", "of_each_directory")


class Text(NamedTuple):
    """A string of the source, which no docstring and no help of an option is."""

    path: Path
    line: int
    text: str


def _docstrings(tree: ast.Module) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


DECLARING = ("option", "operand", "_shows", "group")


def _helps(tree: ast.Module) -> set[int]:
    """What the help shows of options and operands: parsed by the tests of `--help` below."""
    found = set()
    for node in ast.walk(tree):
        name = (
            node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        )
        if isinstance(node, ast.Call) and name in DECLARING:
            found |= {id(part) for each in node.args for part in ast.walk(each)}
        if isinstance(node, ast.keyword) and node.arg in ("help", "epilog"):
            found |= {id(part) for part in ast.walk(node.value)}
    return found


def _strings(path: Path) -> Iterator[Text]:
    tree = tree_of(path)
    spared = _docstrings(tree) | _helps(tree)
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in spared and id(node) not in within:
                yield Text(path, node.lineno, node.value)
        elif isinstance(node, ast.JoinedStr) and id(node) not in spared:
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield Text(path, node.lineno, "".join(map(str, parts)))


def by_hand(path: Path) -> list[Text]:
    return [
        text
        for text in _strings(path)
        if BY_HAND.search(text.text) and text.text not in NOT_COMMANDS
    ]


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in MAKERS
        ):
            yield node.func.id, node


def test_no_message_has_a_command_that_is_written_by_hand() -> None:
    found = [text for path in SOURCES if path != MODULE for text in by_hand(path)]
    assert not found, "make it with compactor.host.shell_commands"


@pytest.mark.parametrize(
    "line",
    [
        'raise E(f"{path}: damaged. compactor verify {log_dir} says more")',
        'advice = "Next: compactor log roll"',
        'advice = f"sudo -u {owner} compactor …"',
        'advice = f"{a}: compactor {command} {log_dir}"',
        'advice = "kafka-configs.sh --bootstrap-server HOST:9092 --describe"',
        'advice = f"remove it: rm -r {path}"',
        'advice = f"chown {path}"',
    ],
)
def test_one_that_is_written_by_hand_is_found(line: str, tmp_path: Path) -> None:
    module = tmp_path / "message.py"
    module.write_text(f'"""compactor run: not looked at."""\n{line}\n')
    assert [text.line for text in by_hand(module)] == [2]


def test_each_command_that_is_made_or_named_is_one_of_ours() -> None:
    seen = set()
    for path in SOURCES:
        for maker, call in _calls(path):
            first = call.args[0]
            if isinstance(first, ast.Name):  # a maker that hands on what it was given
                assert path.name in ("shell_commands.py", "remedies.py"), path
                continue
            assert isinstance(first, ast.Constant), f"{path}: {maker} of what?"
            seen.add(str(first.value))
    for name in seen - {"--entry-file"}:
        words = ("/d",) if name in OF_DIRECTORIES else ("/d", "t-0")
        require_right(("compactor", *name.split(), *words, *NEEDED.get(name, ())))
    assert {"verify", "recover", "log roll", "undo", "run", "explain"} <= seen


def test_the_examples_of_the_help_can_be_typed() -> None:
    """What stands behind a pipe reads what is before it."""
    folder = MODULE.parents[1] / "command_line"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    found = [" ".join(each.split()) for text in texts for each in EXAMPLES.findall(text)]
    found += re.findall(r"compactor [^\n]+", app.epilog or "")
    lines = [line.rpartition("| ")[2] for line in found if "compactor " in line]
    assert len(lines) > 15
    for line in lines:
        require_right(shlex.split(line))
