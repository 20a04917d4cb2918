"""One log of a stopped broker under the hands of its operator: looked at, read, changed, moved."""
