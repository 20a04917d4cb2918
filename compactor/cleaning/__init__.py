"""One round over its logs: the stages, the proof, the swap, the checkpoints."""
