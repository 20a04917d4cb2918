"""What is wrong with the words of a command line, in our words: the library's are not seen."""

import re

from compactor.host.printable import one_line

_AFTER_MISSING = {
    "LOG_DIR": "the broker's log directory, as log.dirs in its server.properties names it",
    "TOPIC-PARTITION": "the log, like orders-0",
    "RUN_DIR": "the run's own directory, DIR/RUN_ID of --keep-originals DIR",
    "PATH": "a file of a log directory, or a partition",
}
_LIMITS = (
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"expected \1 or more"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"expected \1 or less"),
    (re.compile(r"Input should be a valid integer.*"), "expected a whole number"),
    (re.compile(r"Input should be a valid number.*"), "expected a number"),
    (re.compile(r"Input should be a valid \w+.*"), "expected another kind of value"),
)


def usage_message(error: Exception) -> str:
    """One line without a full stop."""
    text = one_line(str(getattr(error, "format_message", error.__str__)())).rstrip(".")
    text = text.replace("Value error, ", "")
    for pattern, ours in _LIMITS:
        text = pattern.sub(ours, text)
    text = re.sub(r" \(Possible options: ([^)]*)\)", _options, text)
    text = re.sub(r"\. Did you mean (.*)\?", _commands, text)
    text = re.sub(
        r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"too many words: \1", text
    )
    missing = re.fullmatch(r"(?:Invalid value: )?Missing argument '([^'.]+)(?:\.\.\.)?'", text)
    if missing and missing[1] in _AFTER_MISSING:
        text = f"{missing[1]} is missing: {_AFTER_MISSING[missing[1]]}"
    return text or "a command is missing"


def _options(found: re.Match[str]) -> str:
    return f"; did you mean {' or '.join(found[1].split(', '))}?"


def _commands(found: re.Match[str]) -> str:
    names = (name.strip("'") for name in found[1].split(", "))
    return f"; did you mean {' or '.join(names)}?"
