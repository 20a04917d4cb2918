"""What a comparison comes to for one log."""

from enum import StrEnum


class Soundness(StrEnum):
    WHOLE = "whole"  # the latest record of every key is there
    REMOVED = "removed"  # what is gone was to go, and something shows it
    UNEXPLAINED = "unexplained"  # something is not as it was, and nothing shows why
