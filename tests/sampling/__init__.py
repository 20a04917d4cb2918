"""Random logs, and how well a sample of each says what a run would free."""
