"""Random logs, and how well a sample of each tells what a run would free."""
