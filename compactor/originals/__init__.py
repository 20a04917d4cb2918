"""Keep what a run replaces, and bring it back."""
