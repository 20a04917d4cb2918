"""One module for each format on disk, named like the file or the structure."""
