"""The table of Kafka's versions: what it holds, whose answer is chosen, and that none is beside."""

import re

import pytest

from storage.kafka_versions import (
    BY_NAME,
    NEWEST,
    OLDEST,
    VERSIONS,
    KafkaVersion,
    last_kept_offset,
    nobody_knows,
    of_broker,
)
from tests.rule_numbers import ROOT

TABLE = ROOT / "storage" / "kafka_versions.py"
PAGE = ROOT / "docs" / "spec" / "versions.md"
PACKAGES = ("compactor", "cleaner_jobs", "storage", "packing")
# a version of Kafka as a text of its own, or an attribute by which one could be told from another
COMPARED = re.compile(
    r"""["']4\.[0-9](\.[0-9])?["']|\.(name|release|metadata_version)\s*[<>=!]=?\s*["']?4"""
    r"""|\b(NEWEST|OLDEST)\b\s*[<>=!]=|\bis (not )?(NEWEST|OLDEST)\b|\bVERSIONS\["""
)


@pytest.mark.parametrize(
    ("metadata_version", "wanted", "is_warned"),
    [
        (7, "4.1", False),  # 3.3, older than known
        (26, "4.1", False),
        (27, "4.1", False),
        (28, "4.1", False),  # between two
        (29, "4.2", False),
        (30, "4.3", False),
        (31, "4.3", False),
        (33, "4.4", False),
        (34, "4.4", True),  # newer than known
    ],
)
def test_the_software_of_the_broker_decides(
    metadata_version: int, wanted: str, is_warned: bool
) -> None:
    """V-1; the numbers are those of MetadataVersion.LATEST_PRODUCTION of each release."""
    found = of_broker(metadata_version, "broker 1")
    assert found.version is BY_NAME[wanted]
    assert (found.warning is not None) is is_warned
    assert f"metadata.version {metadata_version}" in found.why


def test_unknown_is_the_newest() -> None:
    assert nobody_knows("x").version is NEWEST


@pytest.mark.parametrize("name", ["4.1", "4.2", "4.3"])
def test_up_to_4_3_the_empty_batch_at_the_end_of_the_round_stays(name: str) -> None:
    assert last_kept_offset(BY_NAME[name], 10, 20) == 10


def test_since_4_4_the_empty_batch_at_the_high_watermark_stays() -> None:
    """V-2."""
    assert last_kept_offset(BY_NAME["4.4"], 10, 20) == 20


def test_the_versions_rise() -> None:
    assert [VERSIONS[0], VERSIONS[-1]] == [OLDEST, NEWEST]
    supported = [each.metadata_version for each in VERSIONS]
    assert supported == sorted(set(supported))


@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: each.name)
def test_the_page_has_the_same_table(version: KafkaVersion) -> None:
    found = f"| {version.name} | {version.release} | {version.metadata_version} |"
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(found)]
    assert ("is obeyed" in row) is version.limits_decompression
    assert ("prepares the active" in row) is version.prepares_to_close
    assert ("both bytes" in row) is version.reads_whole_txn_version
    assert row.endswith(f"| {version.codecs.zstd} |")


def test_no_other_code_compares_versions() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != TABLE
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if COMPARED.search(line)
    ]
    assert found == []
