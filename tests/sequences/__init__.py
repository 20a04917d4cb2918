"""Random sequences of our commands and Kafka's, then planted losses, for `verify --against`."""
