"""Tests of compactor.originals."""
