"""Settings of a round and of topics: files, flags, the metadata log, and which of them counts."""
