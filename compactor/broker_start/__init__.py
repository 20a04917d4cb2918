"""Say what a broker comes to that starts on log directories as they are, and what mends it."""
