"""The old place of `ManualScheduler`; everything else of a log is in `storage.log`."""
