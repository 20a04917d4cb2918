"""Stand-ins for the files of a local disk: in memory, and watched."""
