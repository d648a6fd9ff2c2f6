"""WHEN. Airflow DAGs, derived from the registered views; they call the command `galatea` and import no engine."""
