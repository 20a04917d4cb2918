"""Tests of compactor.recovery.log_dir_recovery."""
