"""WHEN. Airflow DAGs belong here, derived from the registered views; they call the command and import no engine."""
