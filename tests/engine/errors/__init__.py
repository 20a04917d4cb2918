"""Every operation on a file fails, in every operation of the engine."""
