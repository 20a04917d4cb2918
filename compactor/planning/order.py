"""The orders that logs can be put in."""

from enum import StrEnum


class Order(StrEnum):
    """Which logs come first, in a list and where a budget is not enough for all."""

    GAIN = "gain"  # most dirty bytes that a run would clean, whatever a sample says
    FILTHIEST = "filthiest"  # highest dirty ratio, which is Kafka's order
    SMALLEST = "smallest"  # fewest bytes in all
    OLDEST = "oldest"  # dirty for the longest time
