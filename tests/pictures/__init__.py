"""The pictures of the README, made from what the program shows: `make pictures`."""
