"""A real Kafka broker around our compaction: what its clients see before and after."""
