"""Whether the kernels are compiled at all: numba leaves that out where a variable says so."""

from collections.abc import Mapping

_VARIABLE = "NUMBA_DISABLE_JIT"
UNSET_IT = f"Unset {_VARIABLE}: it is for looking for faults in kernels."


def why_not_compiled(environ: Mapping[str, str]) -> str | None:
    """Say that kernels run as plain Python, without a full stop; None where they do not."""
    value = environ.get(_VARIABLE, "")
    if value.strip() in ("", "0"):
        return None
    return f"{_VARIABLE}={value}: no kernel is compiled, and all takes hundreds of times as long"
