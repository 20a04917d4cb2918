"""Random scripts replayed by this engine and by Kafka's own: equal transcripts, equal files."""
