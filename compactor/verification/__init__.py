"""Verifies that a log is sound, and that readers get from it what they got before."""
