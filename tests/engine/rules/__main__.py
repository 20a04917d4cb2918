"""python -m tests.engine.rules: ask Kafka's engine for its answers to the scripts of the rules.

Needs a JDK. Takes a few seconds; what it writes is kept in tests/golden/engine/rules.
"""

import argparse
import json
import tempfile
from pathlib import Path

from compactor.host.output import print_line
from tests.engine.rules import kept
from tests.engine.rules.kept import Answer
from tests.engine.rules.parts import PARTS
from tests.engine.transcripts import lines_of
from tests.oracle import kafka


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=sorted(PARTS), help="those of these alone")
    wanted = parser.parse_args().parts
    with tempfile.TemporaryDirectory() as scratch:
        scripts, answers = Path(scratch) / "scripts", Path(scratch) / "answers"
        scripts.mkdir()
        for part in wanted:
            for number, case in enumerate(PARTS[part]):
                text = "".join(json.dumps(line) + "\n" for line in case.script)
                (scripts / f"{part}-{number}.jsonl").write_text(text)
        kafka.run("engine-all", scripts, answers, "--hex", "true")
        for part in wanted:
            kept.write(part, [_answer(answers, part, i) for i in range(len(PARTS[part]))])
            print_line(f"{part}: {len(PARTS[part])} scripts answered")


def _answer(answers: Path, part: str, number: int) -> tuple[str, Answer]:
    case, stem = PARTS[part][number], f"{part}-{number}"
    as_bytes = lines_of((answers / f"{stem}.hex.jsonl").read_text())
    transcript = lines_of((answers / f"{stem}.transcript.jsonl").read_text())
    return case.name, Answer(case.script, as_bytes, transcript)


if __name__ == "__main__":
    main()
