"""What starts runs on a schedule: runs killed by it and the next ones, a week of nights."""
