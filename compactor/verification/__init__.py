"""Shows that readers get from a log what they got before, and checks all logs of a directory."""
