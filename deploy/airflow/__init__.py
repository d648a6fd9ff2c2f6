"""Airflow beside the stack, or somewhere else: how it is started, asked, and told how far a task is."""
