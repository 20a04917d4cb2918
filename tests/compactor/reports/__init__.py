"""Tests of compactor.reports."""
