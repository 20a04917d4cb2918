"""Tests of compactor.command_line."""
