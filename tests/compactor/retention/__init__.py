"""Tests of compactor.retention."""
