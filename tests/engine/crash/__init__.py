"""Crash states of the engine's own operations, opened by Kafka's engine and by ours."""
