"""The operator and the example DAG in a real Airflow, in an environment of its own."""
