"""Small logs with every byte changed and cut at every length, opened by Kafka's engine and ours."""
