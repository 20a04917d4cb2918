"""Words of the command line that are values as they stand: nothing is loaded to check them.

typer has each value checked by pydantic, which takes a tenth of a second to load. Nearly every
value that is given to a command is text that was asked for as text, or a default.
"""

from typing import Any, get_args

_NO_SUCH_THING = object()


def take_plain_words(parameters: list[Any]) -> list[Any]:
    """Let parameters take such values as they are; any other, and in another typer, as ever."""
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", _NO_SUCH_THING) is None:  # typer makes it when used
            parameter._runtime_param = _PlainFirst()
    return parameters


class _PlainFirst:
    """Stands in for what typer makes to check a parameter's value."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value for the command. Raise a usage error for one that it cannot be."""
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        descriptor = param.type_descriptor
        if descriptor.parameter_info.parser is None:
            if type(value) is descriptor.annotation:
                return value
            if is_list and get_args(descriptor.annotation) == (str,) and _are_text(value):
                return list(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _are_text(values: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
