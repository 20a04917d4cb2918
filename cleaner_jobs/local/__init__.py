"""Runs the tasks of a round in processes of this host, without Spark and Java."""
