"""Every command of the how-to pages, in turn, on directories that a broker left.

The steps below are those of the pages, word by word: a new command on a page fails until it is
here. What the broker wrote (make_broker_dirs.py) gives the numbers: `customers-0` has 900 records
of 100 keys, 800 of them before the active segment; likewise `orders-3`, and `orders-7` before its
open transaction, which begins at offset 900.
"""

import re
from pathlib import Path

import pytest

from tests.end_to_end.operator_shell import Shell
from tests.end_to_end.operator_steps import (
    NotRun,
    Step,
    carry_out,
    damage,
    lay,
    make,
    move,
    write_topics,
)
from tests.golden import broker_dirs

pytestmark = pytest.mark.spark

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
COMMAND = re.compile(
    r"^    (\S.*)$|`((?:compactor|spark-submit|kafka-\w+\.sh) [^`]+)`", re.MULTILINE
)
JSON = re.compile(r"```json\n(.*?)```", re.DOTALL)


def write_topics_of_page(shell: Shell) -> None:
    (text,) = JSON.findall((HOW_TO / "topics-json.md").read_text(encoding="utf-8"))
    shell.path("home/topics.json").write_text(text)


STOPPED = lay(broker_dirs.STOPPED, "/data/kafka")
KILLED = lay(broker_dirs.KILLED, "/data/kafka")
BROKER_RUNS = "asks a broker that runs"
# Without the size behind the arrow: a batch with a tombstone gets its delete horizon as base
# timestamp, so its records take more bytes the older the directory is.
CLEANED = ("customers-0 0–800 4 → 4 56.0 kB →", "kB 800 → 100 700")
COMMITS = ("__consumer_offsets-12 0–576 3 → 3 48.2 kB →", "B 576 → 8 568")
OTHER_DISK = make("/mnt/other-disk")

PAGES: dict[str, list[Step | NotRun]] = {
    "README.md": [],
    "backup.md": [
        Step(
            "compactor plan /backup/kafka",
            says=("Logs: 4 to clean",),
            before=(lay(broker_dirs.STOPPED, "/backup/kafka"), make("/restore")),
            keeps="/backup/kafka",
        ),
        Step(
            "compactor run /backup/kafka --output /restore/kafka",
            says=CLEANED,
            keeps="/backup/kafka",
        ),
        Step("compactor verify /restore/kafka --manifest", says=("all sound",)),
        Step(
            "compactor verify /restore/kafka --against /backup/kafka",
            says=("every key has its latest record", "all that is gone had a reason"),
        ),
    ],
    "cleaner-died.md": [
        Step(
            "compactor doctor /data/kafka",
            says=("A run can be done",),
            before=(STOPPED, damage),
            keeps="/data/kafka",
        ),
        Step("compactor plan /data/kafka", says=("Logs: 4 to clean",), keeps="/data/kafka"),
        Step(
            "compactor run /data/kafka --dry-run",
            code=4,
            says=("orders-7/00000000000000000200.log, byte 0:", "1 set aside", "would go"),
            keeps="/data/kafka",
        ),
        Step(
            "compactor run /data/kafka --keep-originals /data/originals",
            code=4,
            says=("as hard links", "to discard them: compactor undo", *CLEANED),
        ),
        Step("compactor verify /data/kafka", code=4, says=("1 finding",)),
        Step(
            "compactor verify /data/kafka orders-7",
            code=4,
            says=("orders-7/00000000000000000200.log, byte 0:", "1 finding"),
        ),
    ],
    "consumer-offsets.md": [
        Step(
            "compactor explain /data/kafka __consumer_offsets-12",
            says=("would be compacted now",),
            before=(STOPPED,),
        ),
        Step("compactor inspect /data/kafka __consumer_offsets-12", says=("billing-", "orders")),
        Step(
            "compactor run /data/kafka --include __consumer_offsets --dry-run",
            says=("1 would be cleaned", *COMMITS),
        ),
        Step(
            "compactor run /data/kafka --include __consumer_offsets "
            "--keep-originals /data/originals",
            says=("1 cleaned", *COMMITS),
        ),
        Step("compactor verify /data/kafka", says=("all sound",)),
    ],
    "disk-full.md": [
        Step("compactor plan /data/kafka --sample", code=0, before=(KILLED,)),
        Step("compactor run /data/kafka --recover-first", says=CLEANED),
        Step(
            "compactor run /data/kafka --recover-first --keep-originals /mnt/other-disk/originals",
            says=CLEANED,
            before=(KILLED, OTHER_DISK),
        ),
        Step(
            "compactor run /data/kafka --recover-first --work-dir /mnt/other-disk/work",
            says=CLEANED,
            before=(KILLED,),
        ),
        Step(
            "compactor run /data/kafka --output /mnt/other-disk/kafka",
            says=CLEANED,
            before=(KILLED,),
            keeps="/data/kafka",
        ),
        Step(
            "compactor log move /data/kafka orders-7 /data2/kafka",
            before=(lay("two/kafka", "/data/kafka"), lay("two/kafka2", "/data2/kafka")),
        ),
    ],
    "hanging-transaction.md": [
        Step(
            "compactor explain /data/kafka orders-7",
            says=("wait behind the open transaction 900",),
            before=(STOPPED,),
        ),
        Step("compactor log offsets /data/kafka orders-7", says=("open transaction of",)),
        NotRun(
            "kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --broker-id 1",
            BROKER_RUNS,
        ),
        NotRun(
            "kafka-transactions.sh --bootstrap-server HOST:9092 abort --topic orders "
            "--partition 7 --start-offset 4711",
            BROKER_RUNS,
        ),
        Step(
            "compactor log abort /data/kafka orders-7 --producer-id 4000 --only-replica --dry-run"
        ),
        Step("compactor log abort /data/kafka orders-7 --producer-id 4000 --only-replica"),
        Step(
            "compactor run /data/kafka --include orders",
            says=("2 cleaned", "orders-7 0–1401"),
        ),
    ],
    "nightly.md": [
        Step(
            "compactor doctor /mnt/cold-1/kafka /mnt/cold-2/kafka",
            says=("A run can be done",),
            before=(
                lay(broker_dirs.STOPPED, "/mnt/cold-1/kafka"),
                lay(broker_dirs.OTHER, "/mnt/cold-2/kafka"),
                write_topics("/etc/compactor/topics.json", "customers", "orders"),
                make("/var/log/log-compactor"),
            ),
        ),
        *(
            Step(
                f"compactor run /mnt/cold-{number}/kafka "
                "--topic-configs /etc/compactor/topics.json "
                f"--report /var/log/log-compactor/cold-{number}.json --quiet"
            )
            for number in (1, 2)
        ),
        Step(
            "spark-submit --master 'local[*]' \"$(compactor --entry-file)\" run "
            "/mnt/cold-1/kafka --topic-configs topics.json",
            says=CLEANED,
            before=(
                lay(broker_dirs.STOPPED, "/mnt/cold-1/kafka"),
                write_topics("home/topics.json", "customers", "orders"),
            ),
        ),
        Step(
            "compactor report /var/log/log-compactor/*.json",
            says=("2 reports", "cold-1", "cold-2"),
        ),
    ],
    "topics-json.md": [
        Step(
            "compactor plan /data/kafka --metadata /data/kafka-metadata",
            says=("Logs: 4 to clean",),
            before=(
                STOPPED,
                move(
                    "/data/kafka/__cluster_metadata-0", "/data/kafka-metadata/__cluster_metadata-0"
                ),
            ),
        ),
        NotRun(
            "kafka-configs.sh --bootstrap-server HOST:9092 --entity-type topics --describe --all "
            "> configs.txt",
            BROKER_RUNS,
        ),
        Step(
            "compactor plan /data/kafka --topic-configs configs.txt",
            says=("Logs: 4 to clean",),
            before=(lay(broker_dirs.CONFIGS, "home/configs.txt"),),
        ),
        Step(
            "compactor configs /data/kafka orders --topic-configs topics.json",
            says=("cleanup.policy compact,delete --topic-configs", "Kafka's default"),
            before=(write_topics_of_page,),
        ),
        Step("compactor plan /data/kafka --topic-configs topics.json", says=("Logs: 4 to clean",)),
        Step(
            "compactor plan /data/kafka --topic-configs topics.json --trust-topic-configs orders",
            says=("Logs: 4 to clean, 0 set aside",),
            before=(
                move(
                    "/data/kafka-metadata/__cluster_metadata-0", "/data/kafka/__cluster_metadata-0"
                ),
            ),
        ),
    ],
}


def commands(page: Path) -> list[str]:
    """Those set apart by four blanks, and those in a sentence, in their order."""
    found = COMMAND.finditer(page.read_text(encoding="utf-8"))
    return [next(filter(None, match.groups())) for match in found]


def test_each_page_has_its_steps() -> None:
    assert sorted(PAGES) == sorted(page.name for page in HOW_TO.glob("*.md"))


@pytest.mark.parametrize("name", [name for name, steps in PAGES.items() if steps])
def test_the_commands_of_a_page_do_what_it_says(name: str, tmp_path: Path) -> None:
    assert commands(HOW_TO / name) == [step.line for step in PAGES[name]]
    carry_out(Shell(tmp_path), PAGES[name])
