"""What the processor can do that kernels are compiled for."""

from numba.core.registry import cpu_target


def features() -> frozenset[str]:
    """In LLVM's words, each behind a plus or a minus."""
    *_, known = cpu_target.target_context.codegen().magic_tuple()
    return frozenset(str(known).split(","))
