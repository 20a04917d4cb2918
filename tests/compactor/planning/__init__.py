"""Tests of compactor.planning."""
