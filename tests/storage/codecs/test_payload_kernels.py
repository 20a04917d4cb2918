"""Payloads by kernels: the same bytes as one by one, and nothing taken that is refused there."""

import zlib
from random import Random

import numpy as np
import pytest
import zstandard

from storage.codecs import inflate_kernel, native_libraries, payload_kernels
from storage.codecs.compression import Codec, DecompressionError, compress, decompress_into
from storage.codecs.payload_kernels import (
    NOT_TAKEN,
    Tools,
    compress_payload,
    decompress_payload,
    max_payload_bytes,
    tools_of_thread,
)
from storage.codecs.zstd_frame import is_single_block
from tests.storage.codecs.random_data import SIZES, damaged, random_data

TAKEN = [Codec.GZIP, Codec.LZ4, Codec.ZSTD]
LARGE = (*SIZES, 65_537, 131_072, 131_073, 200_000, 400_000)


def by_kernel(codec: Codec, data: bytes, tools: Tools) -> bytes | None:
    source = np.frombuffer(b"ab" + data, np.uint8).copy()
    out = np.full(3 + max_payload_bytes(len(data)), 7, np.uint8)
    end = compress_payload(codec, source, (2, 2 + len(data)), out, 3, tools)
    return None if end == NOT_TAKEN else out[3:end].tobytes()


def back(codec: Codec, payload: bytes, room: int, tools: Tools) -> bytes | None:
    source = np.frombuffer(b"ab" + payload, np.uint8).copy()
    out = np.full(3 + room, 7, np.uint8)
    end = decompress_payload(codec, source, (2, 2 + len(payload)), out, (3, 3 + room), tools)
    return None if end == NOT_TAKEN else out[3:end].tobytes()


def one_by_one(codec: Codec, payload: bytes, room: int) -> bytes | None:
    out = np.empty(room, np.uint8)
    try:
        end = decompress_into(codec, payload, out, 0)
    except DecompressionError:
        return None
    return None if end is None else out[:end].tobytes()


def without_addresses() -> Tools:
    nothing = np.zeros(5, np.int64)
    return tools_of_thread()._replace(addresses=nothing, zlib_functions=nothing)


def test_libraries_can_be_called_by_address_here() -> None:
    """Else half of these tests would test nothing. zlib may be part of the interpreter."""
    assert tools_of_thread().addresses.all()
    assert tools_of_thread().zlib_functions.all() or not tools_of_thread().zlib_functions.any()


@pytest.mark.parametrize("codec", TAKEN)
@pytest.mark.parametrize("seed", range(4))
def test_compressed_to_the_same_bytes(codec: Codec, seed: int) -> None:
    chance, tools = Random(seed), tools_of_thread()
    # zlib may be part of the interpreter, as in Debian's Python: then no kernel calls it
    is_taken = codec != Codec.GZIP or tools.zlib_functions.any()
    for _ in range(30):
        data = random_data(chance, LARGE if chance.random() < 0.2 else SIZES)
        payload = compress(codec, data)
        assert by_kernel(codec, data, tools) == (payload if is_taken else None)
        is_usual = codec != Codec.ZSTD or is_single_block(memoryview(payload))
        room = len(data) + (inflate_kernel.MARGIN if codec == Codec.GZIP else 0)
        assert back(codec, payload, room, tools) == (data if is_usual else None)
        if data:
            assert back(codec, payload, len(data) - 1, tools) is None


@pytest.mark.parametrize("codec", TAKEN)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_taken_of_damaged_payloads_is_taken_one_by_one(codec: Codec, seed: int) -> None:
    chance, taken, tools = Random(seed), 0, tools_of_thread()
    for _ in range(200):
        payload = damaged(compress(codec, random_data(chance, (20, 300, 5000))), chance)
        found = back(codec, payload, 200_000, tools)
        if found is not None:
            assert found == one_by_one(codec, payload, 200_000)
            taken += 1
    assert taken > 3


@pytest.mark.parametrize("codec", [*TAKEN, Codec.SNAPPY])
def test_without_addresses_what_calls_libraries_is_left_to_python(codec: Codec) -> None:
    tools = without_addresses()
    data = random_data(Random(1), (5000,))
    payload = compress(codec, data)
    assert by_kernel(codec, data, tools) == (payload if codec == Codec.LZ4 else None)
    is_taken = codec in (Codec.LZ4, Codec.GZIP)
    assert back(codec, payload, 70_000, tools) == (data if is_taken else None)


def test_a_frame_begun_without_room_leaves_nothing_to_the_next() -> None:
    addresses = tools_of_thread().addresses
    data = random_data(Random(2), (40_000,))
    source, out = np.frombuffer(data, np.uint8).copy(), np.empty(100_000, np.uint8)
    room = len(compress(Codec.ZSTD, data)) - 1
    found = native_libraries.zstd_compress_frame(addresses, source, 0, len(data), out, (0, room))
    assert found == native_libraries.FAILED
    assert by_kernel(Codec.ZSTD, data, tools_of_thread()) == compress(Codec.ZSTD, data)


def test_a_library_of_another_version_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstandard, "ZSTD_VERSION", (1, 4, 0))
    native_libraries._zstd_library.cache_clear()
    try:
        assert not native_libraries.zstd_functions_and_contexts().any()
    finally:
        native_libraries._zstd_library.cache_clear()


def test_a_package_without_the_library_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_libraries, "ZSTD_MODULE", "zstandard.none_such")
    native_libraries._zstd_library.cache_clear()
    try:
        assert not native_libraries.zstd_functions_and_contexts().any()
    finally:
        native_libraries._zstd_library.cache_clear()


def test_without_zlibs_library_there_are_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is part of the interpreter."""
    monkeypatch.delattr(zlib, "__file__", raising=False)
    native_libraries._zlib_library.cache_clear()
    try:
        assert not native_libraries.zlib_functions().any()
        assert not native_libraries.zlib_stream().any()
    finally:
        native_libraries._zlib_library.cache_clear()


def test_a_gzip_member_of_another_form_is_left_to_python() -> None:
    data, tools = b"data" * 10, tools_of_thread()
    payload, room = compress(Codec.GZIP, data), 1000
    assert back(Codec.GZIP, payload, room, tools) == data
    head, body, trailer = payload[:10], payload[10:-8], payload[-8:]
    named = head[:3] + b"\x08" + head[4:] + b"name\0"
    for sound in (payload + b"\0", payload + payload, named + body + trailer):
        assert back(Codec.GZIP, sound, room, tools) is None
        assert one_by_one(Codec.GZIP, sound, room) in (data, 2 * data)
    # another time and another system are no reason
    assert back(Codec.GZIP, head[:4] + b"timeLS" + body + trailer, room, tools) == data


@pytest.mark.parametrize("at", range(8))
def test_a_gzip_member_with_another_checksum_or_length_is_left_to_python(at: int) -> None:
    payload = bytearray(compress(Codec.GZIP, b"data" * 10))
    payload[at - 8] ^= 1
    assert back(Codec.GZIP, bytes(payload), 1000, tools_of_thread()) is None
    assert one_by_one(Codec.GZIP, bytes(payload), 1000) is None


@pytest.mark.parametrize("length", range(18 + 42))
def test_a_gzip_member_cut_short_is_left_to_python(length: int) -> None:
    payload = compress(Codec.GZIP, bytes(range(42)))
    assert len(payload) > length
    assert back(Codec.GZIP, payload[:length], 1000, tools_of_thread()) is None


def test_each_thread_has_tools_of_its_own() -> None:
    assert payload_kernels._ToolsOfThread().tools is not tools_of_thread()
