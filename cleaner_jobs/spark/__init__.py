"""The Spark session, its jobs and its workers. pyspark is imported in this room alone."""
