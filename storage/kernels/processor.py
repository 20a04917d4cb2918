"""What the processor can do that kernels are compiled for, and whether this one can.

They are compiled for the processor of this machine, unless NUMBA_CPU_FEATURES says for which: a
packed environment brings kernels that are to serve every machine of a cluster.
"""

from llvmlite.binding import get_host_cpu_features
from numba.core import config
from numba.core.registry import cpu_target

from storage.errors import UnfitProcessorError


def features() -> frozenset[str]:
    """In LLVM's words, each behind a plus or a minus."""
    *_, known = cpu_target.target_context.codegen().magic_tuple()
    return frozenset(str(known).split(","))


def require_processor() -> None:
    """Raise UnfitProcessorError where kernels are compiled for what this processor cannot do."""
    wanted = getattr(config, "CPU_FEATURES", None)
    if not wanted:
        return
    has = get_host_cpu_features()
    asked = (word.strip() for word in wanted.split(","))
    missing = [word[1:] for word in asked if word.startswith("+") and not has.get(word[1:])]
    if missing:
        name, words = getattr(config, "CPU_NAME", None), ", ".join(missing)
        raise UnfitProcessorError(f"kernels are compiled for {name}, this processor lacks {words}")
