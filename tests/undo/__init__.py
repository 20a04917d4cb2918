"""`undo` as a state machine: what becomes of a log between a run and its undoing, step by step."""
