"""Text as Java reads and writes it: strings from bytes, and properties files.

Kafka keeps header keys as Java strings, so bytes that are not UTF-8 do not survive when a batch is
built again (spec C-11.11 b). Java puts one U+FFFD where others put several: for a whole encoded
surrogate, or for the two bytes that begin one. Properties files: `meta.properties` and
`server.properties`. Source: OpenJDK, String.decodeUTF8_UTF16, java.util.Properties.
"""

import re

from storage.errors import CorruptFileError

REPLACEMENT = "\ufffd".encode()
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def through_java(text: bytes) -> bytes:
    """Return text as it is if it is UTF-8, and else with U+FFFD for what is not."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(REPLACEMENT, text).decode(errors="replace").encode()
    return text


_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_ESCAPE = re.compile(r"[\\=:#! \t\n\r\f]|[^\x20-\x7e]")


def decode_properties(data: bytes, path: str) -> dict[str, str]:
    """Return value by name; of a name that stands twice, the later. Raise CorruptFileError."""
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


def escape_property(value: str) -> str:
    """Return a value as a properties file has it, in ASCII."""
    return _TO_ESCAPE.sub(_escaped, value)


def _escaped(character: re.Match[str]) -> str:
    code = ord(character[0])
    if 0x20 <= code <= 0x7E:
        return f"\\{character[0]}"
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))
