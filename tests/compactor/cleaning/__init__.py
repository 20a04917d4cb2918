"""Tests of compactor.cleaning."""
