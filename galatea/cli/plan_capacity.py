"""`galatea plan-capacity`: what a deployment needs, from its workload."""

import math
from dataclasses import asdict
from typing import Annotated

from typer import BadParameter, Option

from deploy.console import print_json, print_message, print_table
from galatea.cli.common.options import AsJson


def _number(value: float) -> float:
    """Refuse `nan`, which lies in every range."""
    if math.isnan(value):
        raise BadParameter("nan is not a number.")
    return value


def plan_capacity(  # noqa: PLR0913, PLR0917 - one parameter per option
    stores: Annotated[int, Option(help="Number of stores.", min=1, max=1_000_000)],
    receipts: Annotated[float, Option(help="Receipts of a store on a day.", min=0, max=1_000_000, callback=_number)],
    lines: Annotated[float, Option(help="Lines of a receipt.", min=1, max=1_000, callback=_number)] = 8.0,
    sensor_events: Annotated[
        float, Option(help="Events of all sensors of a store on a day.", min=0, max=100_000_000, callback=_number)
    ] = 0.0,
    peak: Annotated[
        float,
        Option(help="The busiest hour, as a multiple of the average over 24 hours.", min=1, max=24, callback=_number),
    ] = 4.0,
    kafka_days: Annotated[
        int, Option(help="Days that topics keep records; alerts look 13 days back.", min=8, max=3_650)
    ] = 14,
    years: Annotated[float, Option(help="Years of history.", min=0, max=100, callback=_number)] = 3.0,
    copies: Annotated[int, Option(help="Copies of records in Kafka and of rows in Cassandra.", min=1, max=3)] = 1,
    as_json: AsJson = False,
) -> None:
    """Estimate cores, memory, disks and partitions from measured costs. Needs no stack."""
    from deploy.capacity import Workload, plan_capacity

    workload = Workload(stores, receipts, lines, sensor_events, peak, kafka_days=kafka_days, years=years, copies=copies)
    plan = plan_capacity(workload)
    if as_json:
        print_json({"workload": asdict(workload), "plan": asdict(plan)})
        return
    print_table(
        ("needs", "amount", ""),
        [
            ("events per second", f"{plan.events_per_second:,.1f}", f"{plan.peak_events_per_second:,.1f} at the peak"),
            ("cores", f"{plan.cores:,}", "with room to work off a backlog at the peak"),
            ("memory", f"{plan.memory_gb:,.1f} GB", "of the whole stack"),
            ("partitions", f"{plan.partitions:,}", "of each topic (GALATEA_KAFKA_PARTITIONS); can be multiplied later"),
            ("disk of Kafka", f"{plan.kafka_gb:,.1f} GB", f"{kafka_days} days (GALATEA_KAFKA_RETENTION_DAYS)"),
            ("master dataset", f"{plan.master_gb:,.1f} GB", f"after {years:g} years"),
            ("disk of Cassandra", f"{plan.cassandra_gb:,.1f} GB", f"after {years:g} years, with room for compaction"),
            ("full rebuild", f"{plan.rebuild_minutes:,.0f} minutes", f"after {years:g} years, with these cores"),
        ],
    )
    print_message("An estimate from the benchmarks: measure with your own events before you buy.")
