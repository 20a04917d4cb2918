"""For an environment without pyspark (`make test-storage`); in any other, nothing is collected."""

from importlib.util import find_spec

collect_ignore_glob = ["test_*.py"] if find_spec("pyspark") else []
