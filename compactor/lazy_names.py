"""Loads the public names of a package when they are first asked for.

A package lists them once, in the stub `__init__.pyi` beside its `__init__.py`, a line each:

    from module import name as name
    from package import *            the names of another package's stub, too

Type checkers read the stub; `__getattr__` of the package reads it, too, and imports the module of
the name that is wanted. So `import compactor` loads neither Spark nor Arrow nor a kernel,
nor `typing`, which takes longer than all of this.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType

_OWN = "compactor."


def lazy_names(
    package: str, checks_arguments: bool = True
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return what the package of this name assigns to `__getattr__` and `__dir__`.

    checks_arguments: its functions name a wrong argument before they begin, where they are ours.
    """

    def load(name: str) -> object:
        if name == "__all__":
            return names()
        module = None if name.startswith("_") else _modules(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        if checks_arguments and isinstance(value, FunctionType) and module.startswith(_OWN):
            value = import_module("compactor.api.arguments").checked(value)
        setattr(import_module(package), name, value)
        return value

    def names() -> list[str]:
        return sorted(_modules(package))

    return load, names


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of each public name, from the stub; also of a package in an archive."""
    module: ModuleType = import_module(package)
    assert module.__spec__ is not None and module.__file__ is not None
    path = os.path.join(os.path.dirname(module.__file__), "__init__.pyi")
    stub: str = module.__spec__.loader.get_data(path).decode()  # type: ignore[union-attr]
    found: dict[str, str] = {}
    for line in stub.splitlines():
        source, is_import, names = line.removeprefix("from ").partition(" import ")
        if not is_import or not line.startswith("from "):
            continue
        name, _, public = names.partition(" as ")
        if names.startswith("*"):
            found |= _modules(source)
        elif name == public:
            found[name] = source
    return found
