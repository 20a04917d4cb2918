"""Clean the logs of a round: the stages, the proof, the swap, the checkpoints, retention."""
