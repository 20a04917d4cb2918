"""What a command says, held back until it is known whether a person has to see it (`--quiet`)."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.host.output import print_error, standard_output


class HeldBack:
    """Said so far. is_wanted: whether it is to be said after all, as it is unless all went well."""

    def __init__(self) -> None:
        self.out, self.error = io.StringIO(), io.StringIO()
        self.is_wanted = True


@contextmanager
def held_back() -> Iterator[HeldBack]:
    """Standard output and standard error of this process; what is wanted is given on at the end."""
    streams = sys.stdout, sys.stderr
    held = HeldBack()
    sys.stdout, sys.stderr = held.out, held.error
    try:
        yield held
    finally:
        sys.stdout, sys.stderr = streams
        if held.is_wanted:
            if held.error.getvalue():
                print_error(held.error.getvalue().removesuffix("\n"))
            with standard_output() as out:
                out.write(held.out.getvalue())
                out.flush()
