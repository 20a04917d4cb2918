"""Runs killed for real, at random moments, and what is left of the logs."""
