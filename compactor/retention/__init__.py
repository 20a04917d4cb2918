"""Which old segments go for good, and how."""
