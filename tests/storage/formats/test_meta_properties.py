"""Identity of a log directory, spec F-15.3, in the syntax of java.util.Properties."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.formats import meta_properties
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties, decode, encode

KRAFT = MetaProperties(1, "oracle-oracle-oracle-ab", 1, "AAAAAAAAAAAAAAAAAAAAZQ")
KRAFT_BYTES = (
    b"#\n#Fri Nov 20 10:00:00 UTC 2026\nnode.id=1\nversion=1\n"
    b"directory.id=AAAAAAAAAAAAAAAAAAAAZQ\ncluster.id=oracle-oracle-oracle-ab\n"
)


def test_the_file_of_a_kraft_broker_is_read() -> None:
    assert decode(KRAFT_BYTES, META_PROPERTIES) == KRAFT


def test_the_file_of_an_older_broker_is_read() -> None:
    data = b"cluster.id=abc\nversion=0\nbroker.id=3\n"
    assert decode(data, META_PROPERTIES) == MetaProperties(0, "abc", 3, None)
    assert decode(b"", META_PROPERTIES) == MetaProperties(0, None, None, None)


@pytest.mark.parametrize(
    "data",
    [
        b"version = 1\r\nnode.id : 1\r\ncluster.id\tx\r\n",
        b"! note\n  version=1\nnode.id=1\ncluster.id=\\\n   x",
        b"version=1\nnode\\u002eid=1\ncluster.id=\\u0078\n\n",
        b"version=2\nversion=1\nnode.id=1\ncluster.id=x",
        b"version=1 \t\nnode.id=1\ncluster.id=x",
        b"# ends in a backslash \\\nversion=1\nnode.id=1\ncluster.id=\\x",
    ],
)
def test_the_syntax_of_java_properties_is_understood(data: bytes) -> None:
    assert decode(data, META_PROPERTIES) == MetaProperties(1, "x", 1, None)


def test_a_file_is_laid_out_in_a_fixed_order() -> None:
    assert encode(KRAFT) == (
        b"version=1\nnode.id=1\ncluster.id=oracle-oracle-oracle-ab\n"
        b"directory.id=AAAAAAAAAAAAAAAAAAAAZQ\n"
    )
    odd = MetaProperties(0, "a b=c:d#e!f\\g\té", None, None)
    assert encode(odd) == b"version=0\ncluster.id=a\\ b\\=c\\:d\\#e\\!f\\\\g\\u0009\\u00E9\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"version=1\nnode.id=1\n", "no cluster.id"),
        (b"version=1\ncluster.id=x\n", "no node.id"),
        (b"version=1\ncluster.id=x\nnode.id=y\n", "'y' is not a 32-bit integer"),
        (b"version=x\n", "'x' is not a 32-bit integer"),
        (b"cluster.id=\\u00zz\n", "malformed"),
    ],
)
def test_a_file_that_kafka_would_refuse_is_corrupt(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        decode(data, META_PROPERTIES)


def test_another_version_is_not_supported() -> None:
    with pytest.raises(UnsupportedFormatError, match="version 2"):
        decode(b"version=2\ncluster.id=x\nnode.id=1\n", META_PROPERTIES)


@pytest.mark.parametrize("kept", range(len(KRAFT_BYTES)))
def test_a_file_cut_short_is_corrupt_or_of_the_default_version(kept: int) -> None:
    try:
        properties = decode(KRAFT_BYTES[:kept], META_PROPERTIES)
    except CorruptFileError:
        return
    assert properties.version == 0 or properties.node_id == 1


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])))
def test_any_text_survives(cluster_id: str) -> None:
    properties = MetaProperties(1, cluster_id, 7, None)
    assert decode(encode(properties), META_PROPERTIES) == properties


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    meta_properties.write(str(tmp_path), KRAFT)
    assert meta_properties.read(str(tmp_path)) == KRAFT
