"""Operations on one log of a stopped broker: read, follow, append, truncate, move."""
