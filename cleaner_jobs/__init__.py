"""What runs on Spark's executors: scan, resolve and rewrite of the logs of one cleaning round."""
