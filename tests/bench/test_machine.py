"""What a benchmark says of the machine that it ran on."""

import pytest

from tests.bench import machine

OTHERS = "fpu sse2 avx512fp16 pclmul"  # names of which those that count are parts


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (
            f"cpu\t: 0\nflags\t\t: {OTHERS} vpclmulqdq avx512f pclmulqdq sse4_2\nbugs\t: a\n",
            "sse4_2 pclmulqdq avx512f vpclmulqdq",
        ),
        (f"flags\t\t: {OTHERS} pclmulqdq sse4_2\n\nflags\t\t: avx512f\n", "sse4_2 pclmulqdq"),
        (f"flags\t\t: {OTHERS}\nbugs\t\t: avx512f\n", ""),
        ("processor\t: 0\nFeatures\t: fp crc32 pmull\n", ""),  # an ARM
        ("", ""),
    ],
)
def test_the_instructions_that_a_processor_has(cpuinfo: str, expected: str) -> None:
    assert machine.instructions(cpuinfo) == expected


def test_facts_say_of_this_machine_what_it_has() -> None:
    named = machine.facts("local[2]", 1)["instructions"]
    assert named.startswith("none of ") or set(named.split()) <= set(machine.INSTRUCTIONS)
