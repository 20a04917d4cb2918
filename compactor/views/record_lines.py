"""Records of `log read` and rows of `dump` as lines: a table, JSON, CSV, bare values."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any

from compactor.host.printable import iso_time, printable
from compactor.inspection.dumped_log import RecordBlock, Row
from compactor.offline_log.record_filter import ReadRecord

CSV_HEADER = "offset,timestamp,timestamp_type,key,value,headers,key_form,value_form"


_json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Form(StrEnum):
    """How bytes are shown."""

    TEXT = "text"
    HEX = "hex"
    JSON = "json"
    BASE64 = "base64"


def table_line(record: ReadRecord, key_form: Form, value_form: Form) -> str:
    """Return offset, time, key, value, headers as a line; NULL for a missing value."""
    time = "-" if record.timestamp_ms is None else iso_time(record.timestamp_ms)
    parts = [
        f"{record.offset:>12}",
        f"{time:<24}",
        _plain(record.key, key_form, "NULL"),
        _plain(record.value, value_form, "NULL"),
    ]
    parts += [f"{name}={_plain(value, Form.TEXT, 'NULL')}" for name, value in record.headers]
    return printable("  ".join(parts))


def json_line(record: ReadRecord, key_form: Form, value_form: Form) -> str:
    """Return an object that `log append` takes: bytes that are no text stand as {"hex": …}."""
    headers = [[name, _in_json(value, Form.TEXT)] for name, value in record.headers]
    return (  # what is always a number or a word by hand: most of the time goes into such lines
        f'{{"offset":{record.offset},"timestamp":{_json_text(record.timestamp_ms)},'
        f'"timestamp_type":{_json_text(record.timestamp_type)},'
        f'"key":{_json_text(_in_json(record.key, key_form))},'
        f'"value":{_json_text(_in_json(record.value, value_form))},'
        f'"headers":{_json_text(headers)}}}'
    )


def csv_line(record: ReadRecord, key_form: Form, value_form: Form) -> str:
    """Return a line of CSV: text in quotes, and null as an empty field without them.

    The last two fields say in which form key and value stand, since no text can: bytes that are no
    text are in hex, and null has no form.
    """
    headers = [[name, _in_json(value, Form.TEXT)] for name, value in record.headers]
    data = _in_csv(record.key, key_form), _in_csv(record.value, value_form)
    fields = [
        str(record.offset),
        "" if record.timestamp_ms is None else str(record.timestamp_ms),
        record.timestamp_type or "",
        *(text for text, _ in data),
        _in_quotes(json.dumps(headers, ensure_ascii=False)) if headers else "",
        *(form for _, form in data),
    ]
    return ",".join(fields)


def value_bytes(record: ReadRecord) -> bytes:
    """Return the value and the end of a line; nothing for a tombstone."""
    return b"" if record.value is None else record.value + b"\n"


def bytes_of(text: str, form: Form) -> bytes:
    """Read what a person has written in a form. Raise ValueError where it is not in that form."""
    if form is Form.HEX:
        return bytes.fromhex(text)
    return base64.b64decode(text, validate=True) if form is Form.BASE64 else text.encode()


def _plain(data: bytes | None, form: Form, null: str) -> str:
    if data is None:
        return null
    if form is Form.HEX:
        return data.hex()
    if form is Form.BASE64:
        return base64.b64encode(data).decode()
    return data.decode(errors="backslashreplace")


def _in_csv(data: bytes | None, form: Form) -> tuple[str, str]:
    """Return a field, and the form that it is in."""
    if data is None:
        return "", ""
    if form in (Form.TEXT, Form.JSON):
        try:
            return _in_quotes(data.decode()), Form.TEXT.value
        except UnicodeDecodeError:
            form = Form.HEX
    return _in_quotes(_plain(data, form, "")), form.value


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _in_json(data: bytes | None, form: Form) -> Any:
    return None if data is None else _JSON[form](data)


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return _text(data)


_JSON: dict[Form, Callable[[bytes], Any]] = {
    Form.TEXT: _text,
    Form.HEX: lambda data: {"hex": data.hex()},
    Form.JSON: _json,
    Form.BASE64: lambda data: {"base64": base64.b64encode(data).decode()},
}


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
            lines = lines_of(part) if isinstance(part, RecordBlock) else line_of_row(part, in_json)
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


def line_of_row(row: Row, in_json: bool) -> bytes:
    text = json_of_row(row) if in_json else printable(text_of_row(row))
    return text.encode(errors="backslashreplace") + b"\n"


def json_of_row(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def text_of_row(row: Row) -> str:
    """Return a row as its kind, then names and values; what a batch or record lacks is left out."""
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
    """Quote data, so that the text "null" is not taken for no value."""
    if isinstance(value, str) and name not in _DATA and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


class _LinesOfBlock:
    """Makes the lines of the records of a batch, by a kernel once they are many."""

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
            found = b"".join(line_of_row(row, self._in_json) for row in block.rows())
        return found
