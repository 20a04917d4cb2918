"""Pure kernels of cleaning: the offset map, and what is kept and rebuilt of a batch."""
