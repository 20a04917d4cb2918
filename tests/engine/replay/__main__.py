"""python -m tests.engine.replay SCRIPT DIR: do a script, and print its transcript.

SCRIPT: a file of operations, a JSON object a line (tests/oracle/README.md). DIR: new or empty.
"""

import argparse
import json
import sys
from pathlib import Path

from storage.files.local import LOCAL
from storage.kafka_versions import BY_NAME, NEWEST
from tests.engine.replay.replay import Replay
from tests.engine.replay.replayed import cleaner_beside


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.engine.replay", description=__doc__)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--kafka", choices=BY_NAME, default=NEWEST.name)
    asked = parser.parse_args(words)
    if LOCAL.exists(asked.directory) and LOCAL.list_directory(asked.directory):
        parser.error(f"{asked.directory} is not empty; a replay takes a new directory")
    version = BY_NAME[asked.kafka]
    replay = Replay(LOCAL, asked.directory, cleaner_beside(asked.directory, version), version)
    script = [
        json.loads(line) if line.strip() and not line.startswith("#") else None
        for line in Path(asked.script).read_text("utf-8").splitlines()
    ]
    for line in replay.lines(script):
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
