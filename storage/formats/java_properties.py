"""Java's properties files: `meta.properties`, `server.properties`. Source: java.util.Properties."""

import re

from storage.errors import CorruptFileError

_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_ESCAPE = re.compile(r"[\\=:#! \t\n\r\f]|[^\x20-\x7e]")


def decode(data: bytes, path: str) -> dict[str, str]:
    """Give value by name; of a name that stands twice, the later. Raise CorruptFileError."""
    values = {}
    for line in _logical_lines(data.decode("latin-1")):
        found = _KEY.match(line)
        assert found is not None, "matches the empty string too"
        key = _unescaped(found[1], path, "in a key")
        values[key] = _unescaped(line[found.end() :], path, f"in the value of {key}")
    return values


def _logical_lines(text: str) -> list[str]:
    """Join lines that end in a lone backslash with the next; leave out comments and blank lines."""
    lines: list[str] = []
    continued = False
    for natural in _LINE_END.split(text):
        line = natural.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        if continued:
            lines[-1] += line
        else:
            lines.append(line)
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        if continued:
            lines[-1] = lines[-1][:-1]
    return lines


def _unescaped(text: str, path: str, where: str) -> str:
    """where: for an error, which does not show the text itself, since that may be a password."""

    def meaning(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code == "u":
            raise CorruptFileError(path, 0, f"malformed \\u escape {where}")
        return _NAMED_ESCAPES.get(code, code)

    return _ESCAPE.sub(meaning, text)


def escaped(value: str) -> str:
    """Give a value as it is written, in ASCII."""
    return _TO_ESCAPE.sub(_escaped, value)


def _escaped(character: re.Match[str]) -> str:
    code = ord(character[0])
    if 0x20 <= code <= 0x7E:
        return f"\\{character[0]}"
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))
