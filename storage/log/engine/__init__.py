"""Kafka's log as an engine: it appends, reads, rolls, recovers, truncates and expires."""
