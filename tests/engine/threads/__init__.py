"""One writer and four readers of one log, in threads, held against a model."""
