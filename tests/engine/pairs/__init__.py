"""Every pair of operations of a log manager, in two threads and in two processes, by a seed."""
