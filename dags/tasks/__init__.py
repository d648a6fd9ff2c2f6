"""The operators and tasks of the DAGs."""
