"""What compiled kernels share. No file is read here."""
