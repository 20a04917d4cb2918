"""Tables, lines and JSON of the results of commands.

`__init__.pyi` lists the names that commands use. One is loaded when it is first asked for.
"""

from compactor.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, checks_arguments=False)
