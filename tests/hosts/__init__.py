"""Runs on several hosts, which are mount namespaces of this one."""
