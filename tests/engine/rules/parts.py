"""The parts that the cases stand in, by name."""

from collections.abc import Mapping, Sequence

from tests.engine.rules import (
    appending,
    loading,
    producing,
    reading,
    rolling,
    shortening,
    validating,
)
from tests.engine.rules.case import Case

PARTS: Mapping[str, Sequence[Case]] = {
    "appending": appending.CASES,
    "loading": loading.CASES,
    "producing": producing.CASES,
    "reading": reading.CASES,
    "rolling": rolling.CASES,
    "shortening": shortening.CASES,
    "validating": validating.CASES,
}
