"""Numbers of a plan or a run to watch: conditions on them, metrics, reports of several hosts."""
