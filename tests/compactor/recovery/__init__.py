"""Tests of compactor.recovery."""
