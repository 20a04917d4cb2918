"""Give work to tasks: what runs them, where they leave it, and what they know of indexes."""
