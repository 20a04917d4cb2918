"""The demonstration's log directory: genuine, the same each time, with something of everything."""

import json
from pathlib import Path

from compactor.settings.config import load_config
from compactor.verification.verify import verify
from demo.proof import read_log_dir
from demo.workload import TOPICS, topic_configs, write_log_dir
from storage.codecs.compression import Codec
from storage.formats.record_batch import decode_header
from tests.compactor.plan_logs import plan_log_dirs

NOW_MS = 1_700_000_000_000
RECORDS = 20_000


class Quiet:
    def stage(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def swapped(self, groups: int) -> None: ...
    def message(self, text: str, log: str | None = None) -> None: ...


def test_it_is_sound_and_has_every_record(tmp_path: Path) -> None:
    write_log_dir(str(tmp_path / "log"), RECORDS, NOW_MS)
    found = verify([str(tmp_path / "log")], (), Quiet())
    assert found.findings == []
    assert found.records == RECORDS == sum(int(RECORDS * topic.share) for topic in TOPICS)
    assert found.partitions == sum(topic.partitions for topic in TOPICS)


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_log_dir(str(tmp_path / name), 5000, NOW_MS)
    assert read_log_dir(str(tmp_path / "a")) == read_log_dir(str(tmp_path / "b"))


def test_every_codec_and_every_kind_of_policy_is_in_it(tmp_path: Path) -> None:
    write_log_dir(str(tmp_path), 2000, NOW_MS)
    codecs = {
        decode_header(path.read_bytes(), 0, str(path)).codec for path in tmp_path.glob("*/*.log")
    }
    assert codecs == set(Codec)
    assert {topic.cleanup_policy for topic in TOPICS} == {"compact", "delete", None}


def test_its_configuration_is_one_that_the_planner_takes(tmp_path: Path) -> None:
    configs = tmp_path / "topics.json"
    configs.write_text(json.dumps(topic_configs()))
    write_log_dir(str(tmp_path / "log"), 400_000 // 8, NOW_MS)
    plan = plan_log_dirs([str(tmp_path / "log")], load_config(None, str(configs)), NOW_MS)
    assert {log.topic for log in plan.logs} <= {"orders", "prices", "customers", "sessions"}
    assert {log.topic for log in plan.not_cleaned} >= {"clicks", "experiments"}
