"""python -m tests.engine.rules: ask Kafka's engine for its answers to the scripts of the rules.

Needs a JDK. Takes a few seconds; what it writes is kept in tests/golden/engine/rules.
"""

import argparse

from compactor.host.output import print_line
from tests.engine.rules import kept
from tests.engine.rules.parts import PARTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=sorted(PARTS), help="those of these alone")
    for part in parser.parse_args().parts:
        cases = PARTS[part]
        answers = kept.ask_kafka(case.script for case in cases)
        kept.write(part, zip((case.name for case in cases), answers, strict=True))
        print_line(f"{part}: {len(cases)} scripts answered")


if __name__ == "__main__":
    main()
