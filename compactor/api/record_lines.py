"""Records as lines of JSON: what `log append` reads, and `log read --format json` writes.

    {"key": "a", "value": null, "timestamp": 1700000000000, "headers": [["trace", "x"]]}

A key, value or header value is text, null, {"hex": …} or {"base64": …}. `value` has to be there:
null is a tombstone. Without `key` a record has none; without `timestamp` it gets the time of
the append, and with `"timestamp": null` it has none.
"""

import base64
import binascii
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from compactor.api.path_arguments import in_place
from compactor.offline_log.record_filter import NewRecord
from compactor.outcome.exit_codes import UsageError
from storage.formats.batch_header import NO_TIMESTAMP

STANDARD_INPUT = "-"
_FIELDS = {"key", "value", "timestamp", "headers"}
_OF_READ = {"partition", "offset", "timestamp_type", "producer_id", "producer_epoch"}
_MAX_LONG = 2**63 - 1


def read_records(path: str) -> list[NewRecord]:
    """The records of a file, or of standard input. UsageError, with the line, at the first that is
    none. Empty lines are passed over.
    """
    if path == STANDARD_INPUT:
        return list(_records(sys.stdin.buffer, path))
    try:
        with open(in_place("--records", path), "rb") as lines:
            return list(_records(lines, path))
    except OSError as error:
        raise UsageError(f"--records {path}: {error.strerror}") from error


def _records(lines: Iterable[bytes], path: str) -> Iterator[NewRecord]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield record_of(line)
            except ValueError as error:
                raise UsageError(f"--records {path}, line {number}: {error}") from error


def record_of(line: bytes | str) -> NewRecord:
    """One record. ValueError, in words, where the line is none."""
    try:
        found: Any = json.loads(line)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("expected an object with key and value")
    unknown = sorted(found.keys() - _FIELDS - _OF_READ)
    if unknown:
        raise ValueError(f"no field is named {unknown[0]!r}")
    if "value" not in found:
        raise ValueError("has no value; a tombstone is written with null")
    return NewRecord(
        _bytes(found.get("key"), "key"),
        _bytes(found["value"], "value"),
        _timestamp(found["timestamp"]) if "timestamp" in found else None,
        tuple(_headers(found.get("headers"))),
    )


def _timestamp(found: object) -> int:
    if found is None:
        return NO_TIMESTAMP
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _MAX_LONG:
        raise ValueError(f"timestamp {found!r}: expected milliseconds since 1970")
    return found


def _headers(found: object) -> Iterator[tuple[bytes, bytes | None]]:
    if found is None:
        return
    if not isinstance(found, list):
        raise ValueError("headers: expected a list of pairs of a name and a value")
    for pair in found:
        if not (isinstance(pair, list) and len(pair) == 2):
            raise ValueError("headers: expected a list of pairs of a name and a value")
        name, value = (_bytes(part, "headers") for part in pair)
        if name is None:
            raise ValueError("headers: a header has a name")
        yield name, value


def _bytes(found: object, field: str) -> bytes | None:
    if found is None:
        return None
    if isinstance(found, str):
        return found.encode(errors="surrogatepass")
    if isinstance(found, dict) and len(found) == 1:
        ((kind, text),) = found.items()
        if isinstance(text, str):
            try:
                if kind == "hex":
                    return bytes.fromhex(text)
                if kind == "base64":
                    return base64.b64decode(text, validate=True)
            except (ValueError, binascii.Error) as error:
                raise ValueError(f"{field}: not {kind}: {error}") from None
    raise ValueError(f'{field}: expected text, null, {{"hex": …}} or {{"base64": …}}')
