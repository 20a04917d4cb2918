"""Files that this project wrote, edited at random and read back: `make test-read-back`."""
