"""Tests of compactor.verification."""
