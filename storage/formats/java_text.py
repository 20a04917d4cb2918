"""What a text becomes that Java reads from bytes and writes again.

Kafka keeps header keys as Java strings, so bytes that are not UTF-8 do not survive a batch's being
built anew (spec C-11.11 b). Java puts one U+FFFD where others put several: for a whole encoded
surrogate, or for the two bytes that begin one. Source: OpenJDK, String.decodeUTF8_UTF16.
"""

import re

REPLACEMENT = "\ufffd".encode()
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def through_java(text: bytes) -> bytes:
    """Return text as it is if it is UTF-8, and else with U+FFFD for what is not."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(REPLACEMENT, text).decode(errors="replace").encode()
    return text
