"""The demonstration: a log directory as a broker leaves it, compacted, from plan to proof."""
