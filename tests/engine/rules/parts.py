"""The parts that the cases stand in, by name."""

from collections.abc import Mapping, Sequence

from tests.engine.rules import (
    appending,
    checking,
    cleaning,
    configuring,
    leading,
    loading,
    managing,
    overflowing,
    producing,
    reading,
    rolling,
    shortening,
    splitting,
    validating,
    verifying,
    wrapping,
)
from tests.engine.rules.case import Case

PARTS: Mapping[str, Sequence[Case]] = {
    "appending": appending.CASES,
    "checking": checking.CASES,
    "cleaning": cleaning.CASES,
    "configuring": configuring.CASES,
    "leading": leading.CASES,
    "loading": loading.CASES,
    "managing": managing.CASES,
    "overflowing": overflowing.CASES,
    "producing": producing.CASES,
    "reading": reading.CASES,
    "rolling": rolling.CASES,
    "shortening": shortening.CASES,
    "splitting": splitting.CASES,
    "validating": validating.CASES,
    "verifying": verifying.CASES,
    "wrapping": wrapping.CASES,
}
