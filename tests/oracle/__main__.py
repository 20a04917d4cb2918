"""python -m tests.oracle VERB …: Kafka's own storage engine on the command line; see README.md."""

import os
import sys

from tests.oracle import jars, kafka


def main(arguments: list[str]) -> None:
    try:
        argv = kafka.command(*(arguments or ["help"]))
    except jars.OracleUnavailableError as error:
        sys.exit(str(error))
    os.execv(argv[0], argv)


main(sys.argv[1:])
