"""The machine and the terminal: Java, standard streams, progress, text that is safe to print."""
