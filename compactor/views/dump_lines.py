"""Parts of a dump as lines: an object a line, or the same facts as `name value` pairs."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compactor.host.printable import printable
from compactor.inspection.dumped_log import RecordBlock, Row

CHUNK_BYTES = 64 << 10  # of lines that are shown at once
KERNELS_FROM_BYTES = 256 << 10  # of records: for fewer it takes longer to load the kernel
_DATA = ("key", "value", "headers")  # what producers wrote


def chunks_of(parts: Iterable[Row | RecordBlock], in_json: bool) -> Iterator[bytes]:
    """Yield whole lines in UTF-8, many at once. What parts raises comes after the lines before."""
    lines_of = _LinesOfBlock(in_json)
    held: list[bytes] = []
    size = 0
    try:
        for part in parts:
            lines = lines_of(part) if isinstance(part, RecordBlock) else line(part, in_json)
            held.append(lines)
            size += len(lines)
            if size >= CHUNK_BYTES:
                chunk, held, size = b"".join(held), [], 0
                yield chunk
    except GeneratorExit:  # nobody takes any more
        held = []
        raise
    finally:
        if held:
            yield b"".join(held)


def line(row: Row, in_json: bool) -> bytes:
    text = json_line(row) if in_json else printable(text_line(row))
    return text.encode(errors="backslashreplace") + b"\n"


def json_line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def text_line(row: Row) -> str:
    """The kind, then names and values; what a batch or record has not is left out."""
    facts = dict(row)
    kind = facts.pop("kind")
    pairs = [
        f"{name} {_text_value(name, value)}"
        for name, value in facts.items()
        if name in ("key", "value") or not (value is None or value is False or value == [])
    ]
    indent = "  " if kind == "record" else ""
    return f"{indent}{kind}  " + "  ".join(pairs)


def _text_value(name: str, value: Any) -> str:
    """Data is quoted, so that the text "null" is not taken for no value."""
    if isinstance(value, str) and name not in _DATA and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


class _LinesOfBlock:
    """The lines of the records of a batch, by a kernel once there are many."""

    def __init__(self, in_json: bool) -> None:
        self._in_json, self._seen_bytes = in_json, 0
        self._kernel: Callable[[RecordBlock], bytes | None] | None = None

    def __call__(self, block: RecordBlock) -> bytes:
        found = None
        if self._kernel is None:
            self._seen_bytes += block.header.size_bytes
            if self._seen_bytes > KERNELS_FROM_BYTES:
                from compactor.views.record_line_kernel import KernelLines

                self._kernel = KernelLines(self._in_json).of
        if self._kernel is not None:
            found = self._kernel(block)
        if found is None:
            found = b"".join(line(row, self._in_json) for row in block.rows())
        return found
