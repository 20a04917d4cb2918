"""Passwords in the metadata log and in server.properties: no command prints or reports them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.settings.test_cluster_settings import cluster
from tests.storage.log.test_cluster_metadata import A, batches, config, log, topic
from tests.support.local_command import run_command

SECRET = "h1dden-Swordfish"
NAMES = (
    "ssl.keystore.password",
    "ssl.key.password",
    "listener.name.internal.ssl.truststore.password",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config",
    "a.plugin.of.our.own.secret",  # whose kind no Kafka knows, so that it counts as sensitive
)
BROKER, TOPIC = 4, 2


def with_secrets(tmp_path: Path, *more: bytes) -> Path:
    """Of the topic, of its broker, of all brokers, of a client's quota, in the static file."""
    dynamic = [config(name, SECRET, of, BROKER) for name in NAMES for of in ("1", "")]
    own = config("a.setting.of.a.plugin", SECRET, "t", TOPIC)
    policy = config("cleanup.policy", "compact")
    static = "".join(f"{name}={SECRET}\n" for name in NAMES)
    return cluster(tmp_path, topic("t", A), policy, own, *dynamic, *more, properties=static)


def said(tmp_path: Path, *words: str | Path) -> str:
    """All that a command prints and writes."""
    ended = run_command(*words)
    written = [path.read_bytes().decode("utf-8", "replace") for path in tmp_path.glob("report.*")]
    return "\n".join([ended.out, ended.error, *written])


COMMANDS: Sequence[Sequence[str]] = (
    ("plan", "DIR", "--all"),
    ("plan", "DIR", "--format", "json"),
    ("plan", "DIR", "--report", "report.html"),
    ("plan", "DIR", "--report", "report.json", "--save", "report.plan"),
    ("plan", "DIR", "--report", "report.csv", "--metrics", "report.prom"),
    ("configs", "DIR"),
    ("configs", "DIR", "t"),
    ("configs", "DIR", "t", "--format", "json", "--report", "report.html"),
    ("explain", "DIR", "t-0"),
    ("explain", "DIR", "t-0", "--format", "json", "--report", "report.html"),
    ("recover", "DIR", "--report", "report.json"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_value_that_means_nothing_here_is_shown(tmp_path: Path, words: Sequence[str]) -> None:
    data = with_secrets(tmp_path)
    places = {"DIR": data} | {w: tmp_path / w for w in words if w.startswith("report.")}
    given = [places.get(word, word) for word in words]
    file = ("--server-properties", tmp_path / "server.properties")
    shown = said(tmp_path, *given, *file)
    assert "t" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("command", ["plan", "configs"])
def test_no_error_shows_one(tmp_path: Path, command: str) -> None:
    """Each of these commands ends with an error, beside which the values stand."""
    wrong = config("log.cleaner.delete.retention.ms", "never", "1", BROKER)
    data = with_secrets(tmp_path, wrong)
    file = tmp_path / "server.properties"
    shown = said(tmp_path, command, data, "--debug")
    assert "never" in shown
    assert SECRET not in shown

    file.write_text(f"ssl.key.password={SECRET}\\u12\n")
    given = (command, data, "--no-metadata")
    shown = said(tmp_path, *given, "--server-properties", file, "--debug")
    assert "server.properties" in shown
    assert SECRET not in shown

    configs = tmp_path / "topics.json"
    configs.write_text(json.dumps({"t": {"ssl.key.password": SECRET}}))
    shown = said(tmp_path, *given, "--topic-configs", configs, "--debug")
    assert "ssl.key.password" in shown
    assert SECRET not in shown


def test_no_error_of_the_metadata_log_shows_one(tmp_path: Path) -> None:
    """A record of a version that is not known, right behind the values."""
    data = with_secrets(tmp_path)
    damaged = b"\1\4\x63" + f"ssl.key.password{SECRET}".encode()
    log(data / METADATA_DIR, 0, batches(0, damaged))
    shown = said(tmp_path, "plan", data, "--debug")
    assert METADATA_DIR in shown
    assert SECRET not in shown
