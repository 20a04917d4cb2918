"""Header keys as Kafka leaves them (C-11.11 b): the pairs were taken from what its cleaner wrote"""

import pytest

from storage.formats.java_text import through_java

FFFD = "efbfbd"


@pytest.mark.parametrize(
    "text", [b"", b"key", b"\x7f\x00", "é".encode(), "\u20ac".encode(), "\U0001f600".encode()]
)
def test_what_is_utf_8_stays(text: bytes) -> None:
    assert through_java(text) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ff31", f"{FFFD}31"),  # the specification's own example
        ("c328e282", f"{FFFD}28{FFFD}"),
        ("e282", FFFD),  # cut short: one for what is there
        ("e28241", f"{FFFD}41"),
        ("c080", FFFD * 2),  # longer than need be: one for each byte
        ("e08080", FFFD * 3),
        ("f09f98", FFFD),
        ("f09f41", f"{FFFD}41"),
        ("f4908080", FFFD * 4),  # beyond U+10FFFF
        ("f5808080", FFFD * 4),
        ("eda080", FFFD),  # a surrogate: one for all three bytes, where Python puts three
        ("eda080edb080", FFFD * 2),
        ("eda0", FFFD),
        ("eda041", f"{FFFD}41"),
        ("eda080bf", FFFD * 2),
        ("e282eda080", FFFD * 2),
        ("f09feda041", f"{FFFD * 2}41"),
    ],
)
def test_what_is_not_becomes_what_java_makes_of_it(text: str, written: str) -> None:
    assert through_java(bytes.fromhex(text)) == bytes.fromhex(written)
