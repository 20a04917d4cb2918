"""Kafka's log format on disk: bytes and files. Knows nothing of cleaning, Spark or Arrow tables."""
