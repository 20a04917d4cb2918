"""A dry run tells what a run does, in every count: over logs by chance that Kafka wrote.

Codecs, transactions, tombstones, legacy formats, and segments below the log start, which the
cleaning merges before retention passes over them (tests/golden). Over logs that are made by chance
each time: tests/compactor/cleaning/test_round_against_reference.py.
"""

from dataclasses import replace

import pytest

from compactor import api
from compactor.api import LogReport, LogStatus, RunOptions
from tests.golden import corpora
from tests.golden.copies import config_of, golden_log, write_copies
from tests.support.file_states import state_of

KINDS = ("random-", "txn-", "legacy-", "everything-", "c6.4-")
OPTIONS = RunOptions(in_process=True, drop_null_keys=True)


@pytest.fixture(scope="module")
def told_and_done(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[LogReport, LogReport]]:
    root = tmp_path_factory.mktemp("dry")
    log_dir, configs = root / "log-dir", root / "topics.json"
    logs = {name: golden_log(name) for name in corpora.partitions() if name.startswith(KINDS)}
    write_copies(log_dir, logs)
    config_of(logs, configs)
    rules = api.Rules(
        topic_configs=str(configs),
        as_of=corpora.now_ms(),
        any_clock=True,
        assume_fully_replicated=True,
    )
    before = state_of(log_dir)
    told = api.run([str(log_dir)], rules, replace(OPTIONS, dry_run=True))
    assert state_of(log_dir) == before
    done = api.run([str(log_dir)], rules, OPTIONS)
    return list(zip(told.logs, done.logs, strict=True))


def test_every_count_is_the_same(told_and_done: list[tuple[LogReport, LogReport]]) -> None:
    as_done = {LogStatus.WOULD_CLEAN: LogStatus.CLEANED}
    assert [
        (told, done)
        for told, done in told_and_done
        if replace(told, status=as_done.get(told.status, told.status)) != done
    ] == []


def test_they_are_many_and_of_every_kind(
    told_and_done: list[tuple[LogReport, LogReport]],
) -> None:
    cleaned = [done for _, done in told_and_done if done.status is LogStatus.CLEANED]
    assert len(cleaned) > 100
    for count in ("superseded", "tombstone", "null_key", "aborted", "marker"):
        assert sum(getattr(log.counts, f"dropped_{count}") > 0 for log in cleaned) > 5, count
    assert any(log.retention.log_start.segments for log in cleaned)
