"""What a Spark task does: files in, files and rows out. Knows nothing of Spark."""
