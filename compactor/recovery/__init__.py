"""Finishes or undoes what was cut short, and recovers what a broker did not leave in good order."""
