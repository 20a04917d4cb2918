"""Kafka's four compression codecs, in the bytes that Kafka's own libraries write."""
