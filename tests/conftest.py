"""For all tests: no example of Hypothesis is too slow because a kernel is compiled meanwhile."""

from hypothesis import settings

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")
