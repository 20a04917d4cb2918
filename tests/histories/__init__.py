"""Random histories of logs, under brokers and under us, held against a model after each step."""
