"""Names that programs took from a package before, and take from `compactor` now."""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def old_names(
    package: str, modules: Mapping[str, str], new_names: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that loads each of its old names with a warning.

    Args:
        package: the dotted name of the old place.
        modules: the module of each name.
        new_names: what those are called now that are not called the same.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        new_name = (new_names or {}).get(name, name)
        warnings.warn(
            f"{package}.{name} has moved: from compactor import {new_name}",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(modules[name]), new_name)

    return load
