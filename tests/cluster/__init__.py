"""Rounds on a standalone cluster: two workers on this machine, over the loopback interface."""
