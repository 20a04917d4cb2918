"""Tests of compactor.api."""
