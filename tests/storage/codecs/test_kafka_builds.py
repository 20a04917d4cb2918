"""Which build of a codec gives which Kafka's bytes (F-8.6): held by what its jars wrote."""

import pytest

from storage.codecs.compression import compress
from tests.storage.codecs.kafka_builds import (
    CODECS,
    SEEDS,
    ZSTD_HERE,
    ZSTD_OF,
    digest,
    payload,
    recorded,
)


@pytest.fixture(scope="module")
def ours() -> dict[str, str]:
    """A digest of what the installed builds write, by codec."""
    return {
        name: digest(compress(codec, payload(seed)) for seed in SEEDS)
        for name, codec in CODECS.items()
    }


def test_the_installed_zstd_is_one_of_a_kafka() -> None:
    assert ZSTD_HERE in ZSTD_OF.values()


@pytest.mark.parametrize("release", ZSTD_OF)
def test_gzip_snappy_and_lz4_are_the_same_in_all_kafkas(ours: dict[str, str], release: str) -> None:
    for name in ("gzip", "snappy", "lz4"):
        assert ours[name] == recorded()[release][name]


@pytest.mark.parametrize("release", ZSTD_OF)
def test_zstd_is_that_of_the_kafkas_with_the_installed_build(
    ours: dict[str, str], release: str
) -> None:
    same = ours["zstd"] == recorded()[release]["zstd"]
    assert same is (ZSTD_OF[release] == ZSTD_HERE)
