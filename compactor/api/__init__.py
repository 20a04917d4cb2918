"""The commands as functions of Python; docs/api.md shows how they are used.

`__init__.pyi` lists the names. One is loaded when it is first asked for.
"""

from compactor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
