"""What the reader's proof takes for a log, beyond what its kernels hold."""

from pathlib import Path

import numpy as np
import pytest

from compactor.verification.reader_log import LogReader
from storage.codecs.compression import Codec, compress
from storage.errors import CorruptFileError
from storage.file_names import LOG, Segment, file_name
from storage.formats.record import Record
from tests.support.legacy_writer import encode_message


@pytest.mark.parametrize("last", [2**31 + 5, 4])  # too far, and before the first
def test_messages_in_a_wrapper_are_in_order_and_within_its_reach(tmp_path: Path, last: int) -> None:
    """Such a wrapper ended the command with an internal error."""
    inner = b"".join(encode_message(0, Record(at, -1, b"k", b"v")) for at in (5, last))
    wrapper = encode_message(0, Record(2**40, -1, None, compress(Codec.GZIP, inner)), Codec.GZIP)
    (tmp_path / file_name(0, LOG)).write_bytes(wrapper)
    reader = LogReader(
        str(tmp_path), [Segment(0, len(wrapper), 0, 0, None, 0, 0)], (np.uint64(1), np.uint64(2))
    )
    with pytest.raises(CorruptFileError, match=r"\.log, byte 0: the batch has offsets"):
        list(reader.chunks())
