"""Tests of compactor.broker_start."""
