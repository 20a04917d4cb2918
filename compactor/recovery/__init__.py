"""Finish or undo what was cut short, and recover what a broker did not leave in good order."""
