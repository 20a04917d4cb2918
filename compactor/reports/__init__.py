"""What a plan or a round is told as: values, JSON, tables."""
