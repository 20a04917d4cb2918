"""Random obstacles in the way of a run, and what `doctor`, `plan` and `run` say of it."""
