"""Compacts log directories of Kafka as its own cleaner does, and reads and writes their logs.

Every public name is one of this package: `from compactor import plan, run, Log`. The list is
`__init__.pyi`; a name is loaded when it is first asked for.
"""

from compactor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
