"""Schedules: Airflow DAGs, derived from the registered views. They call the command `galatea` and import no engine."""
