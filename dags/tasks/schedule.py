"""When a DAG runs: by the clock, in UTC."""

from datetime import timedelta

from airflow.sdk import CronTriggerTimetable


def at(cron: str) -> CronTriggerTimetable:
    """At these times, and never before the first of them: Airflow would make up for one of the last five minutes."""
    return CronTriggerTimetable(cron, timezone="UTC", run_immediately=timedelta(0))
