"""What a plan or a run is watched by: numbers of logs and totals, conditions on them, metrics."""
