"""Random logs as tables, in each reader, held against `dump`: `make test-tables`."""
