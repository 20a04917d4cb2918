"""python -m tests.engine: random scripts, by Kafka's engine and by this one, transcripts compared.

With --manager they are about several logs under a log manager.

Kafka does all scripts in one process; its answers, with every append as bytes, can be kept (`--kept
DIR`) and used again. Ends with 1 where a transcript differs.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from compactor.host.output import print_line
from storage.files.local import LOCAL
from tests.engine import random_engine_script, random_manager_script
from tests.engine.replays import kernels_used, replayed
from tests.engine.script_values import Options
from tests.engine.transcripts import AS_BYTES, first_difference, lines_of
from tests.oracle import kafka

# nothing that the log compresses anew, whose bytes depend on the codec's build; no cleaning
OPTIONS = Options(recompression=False, cleans=False)
SUFFIX = ".transcript.jsonl"


def main() -> None:
    wanted = _parsed()
    with tempfile.TemporaryDirectory() as scratch:
        kept = wanted.kept or Path(scratch) / "kafka"
        if not kept.exists():
            _ask_kafka(wanted, Path(scratch) / "scripts", kept)
        found = list(_differences(kept, Path(scratch) / "logs", not wanted.without_kernels))
    total = len(list(kept.glob(f"*{SUFFIX}"))) if wanted.kept else wanted.scripts
    for name, difference in found:
        print_line(f"{name}: {difference}")
    print_line(f"{total - len(found)} of {total} transcripts are Kafka's")
    sys.exit(bool(found))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scripts", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--manager", action="store_true", help="several logs and their manager")
    parser.add_argument("--kept", type=Path, help="Kafka's answers: used if there, else made")
    parser.add_argument("--without-kernels", action="store_true", help="batch by batch")
    return parser.parse_args()


def _ask_kafka(wanted: argparse.Namespace, scripts: Path, kept: Path) -> None:
    scripts.mkdir()
    random_script = random_manager_script if wanted.manager else random_engine_script
    for seed in range(wanted.first_seed, wanted.first_seed + wanted.scripts):
        text = random_script.script(seed, OPTIONS)
        (scripts / f"engine-{seed:06d}.jsonl").write_text(text)
    kafka.run("engine-all", scripts, kept, "--hex", "true")


def _differences(kept: Path, logs: Path, with_kernels: bool) -> Iterator[tuple[str, str]]:
    for expected in sorted(kept.glob(f"*{SUFFIX}")):
        name = expected.name.removesuffix(SUFFIX)
        lines = lines_of((kept / f"{name}.hex.jsonl").read_text())
        logs.mkdir(exist_ok=True)
        with kernels_used(with_kernels):
            actual = replayed(LOCAL, str(logs / name), lines)
        difference = first_difference(lines_of(expected.read_text()), actual, AS_BYTES)
        if difference is not None:
            yield name, difference


if __name__ == "__main__":
    main()
