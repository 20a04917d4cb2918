"""Tests of compactor.retention.rules."""
