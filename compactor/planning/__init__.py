"""What stands in the log directories, which logs a round takes on, and with what room."""
