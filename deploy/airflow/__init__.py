"""Airflow, of the local stack or elsewhere: how it is started and called."""
