"""What a deployment needs, from its workload: cores, memory, disks, partitions.

Costs are those of `docs/explanation/benchmarks.md`, measured on the machine described there; the rest is assumed
and says so. A plan is a start: measure with your own events before you buy.
"""

from dataclasses import dataclass
from math import ceil

SECONDS_PER_DAY = 86_400
LINES_MEASURED = 8.6
"""Lines of a receipt of the benchmarks; sizes of receipts are in proportion to their lines."""
CORE_MS_PER_EVENT = 0.54
"""Of a receipt: speed layer 0.162, Cassandra 0.075 and Kafka 0.007, measured; archive at most 0.30, by its rate on two
cores. Ingest over REST and alerts are not included. Events of sensors take less."""
SPARE = 2.0
"""How many times the peak can be worked off, so that a backlog shrinks: assumed."""
LEAST_CORES = 2
IDLE_CORES = 0.4
"""Of the whole stack while nothing arrives."""
BYTES_PER_LINE = 1_060 / LINES_MEASURED
"""Of JSON; our own producers compress it."""
MASTER_BYTES_PER_LINE = 304 / LINES_MEASURED
BYTES_PER_SENSOR_EVENT = 300
"""Assumed, as is the next one."""
MASTER_BYTES_PER_SENSOR_EVENT = 90
BYTES_PER_CELL = 12
"""Of the batch layer: measured for rows of many cells of the speed layer, assumed for blocks."""
BYTES_PER_SPEED_CELL = 60
"""In rows of few cells: assumed."""
BYTES_PER_DAY_CELL = 11
"""Of a store, day and SKU; at most one for each line."""
BYTES_PER_IDENTITY = 22
CELLS_PER_STORE_AND_DAY = 3_000
"""Of all views but those of products: assumed. Each line of a receipt adds one more."""
PAIRS_PER_RECEIPT = 4
"""Cells of products bought together, of which a receipt adds up to ten: assumed."""
CASSANDRA_SPARE = 2.0
"""Compaction needs room for another copy."""
LEAST_MEMORY_GB = 6.5
"""What `galatea doctor` asks for without Airflow."""
MEMORY_GB_PER_CORE = 2.0
"""For each further core: assumed."""
REBUILT_PER_CORE_SECOND = 5_000
"""Deliveries that a full rebuild reads and writes to Cassandra, with all that runs on its cores: measured for the eight
views of receipts."""
EVENTS_PER_PARTITION = 500
"""Per second at the peak: assumed."""
LEAST_PARTITIONS = 2
GROWTH = 2
"""Factor by which events may grow without more partitions: adding some later is work."""
GB = 10**9


@dataclass(frozen=True)
class Workload:
    """What is sent.

    Attributes:
        stores: how many.
        receipts: of a store on a day.
        lines: of a receipt.
        sensor_events: of a store on a day, all sensors together.
        peak: events per second in the busiest hour, as a multiple of the average over 24 hours.
        kafka_days: how long topics keep records.
        speed_days: how long the speed layer keeps its rows.
        receipts_days: how long receipts can be read as they came.
        years: how long the master dataset has grown.
        copies: of records in Kafka and of rows in Cassandra.
    """

    stores: int
    receipts: float
    lines: float = 8.0
    sensor_events: float = 0.0
    peak: float = 4.0
    kafka_days: int = 14
    speed_days: int = 7
    receipts_days: int = 35
    years: float = 3.0
    copies: int = 1

    @property
    def events_per_day(self) -> float:
        """Receipts and events of sensors of all stores."""
        return self.stores * (self.receipts + self.sensor_events)

    @property
    def lines_per_day(self) -> float:
        """Lines of all receipts."""
        return self.stores * self.receipts * self.lines

    @property
    def cells_per_day(self) -> float:
        """Cells of all views."""
        pairs = self.stores * self.receipts * PAIRS_PER_RECEIPT
        return self.stores * CELLS_PER_STORE_AND_DAY + self.lines_per_day + pairs


@dataclass(frozen=True)
class Plan:
    """What a workload needs. Disks in GB (10^9 bytes), of all copies together.

    Attributes:
        events_per_second: on average.
        peak_events_per_second: in the busiest hour.
        cores: for the whole stack, with room to work off a backlog.
        memory_gb: for the whole stack.
        partitions: of each topic.
        kafka_gb: what topics keep.
        master_gb: the master dataset after so many years.
        cassandra_gb: both layers after so many years.
        rebuild_minutes: how long a full rebuild takes then, with these cores.
    """

    events_per_second: float
    peak_events_per_second: float
    cores: int
    memory_gb: float
    partitions: int
    kafka_gb: float
    master_gb: float
    cassandra_gb: float
    rebuild_minutes: float


def plan_capacity(of: Workload) -> Plan:
    """Compute what a workload needs."""
    average = of.events_per_day / SECONDS_PER_DAY
    peak, days = average * of.peak, of.years * 365
    cores = max(LEAST_CORES, ceil(IDLE_CORES + peak * SPARE * CORE_MS_PER_EVENT / 1000))
    sensor_events = of.stores * of.sensor_events
    kafka = of.lines_per_day * BYTES_PER_LINE + sensor_events * BYTES_PER_SENSOR_EVENT
    master = of.lines_per_day * MASTER_BYTES_PER_LINE + sensor_events * MASTER_BYTES_PER_SENSOR_EVENT
    speed = of.cells_per_day * BYTES_PER_SPEED_CELL + of.events_per_day * BYTES_PER_IDENTITY
    batch = of.cells_per_day * BYTES_PER_CELL + of.lines_per_day * BYTES_PER_DAY_CELL
    raw = of.lines_per_day * BYTES_PER_LINE
    cassandra = batch * days + speed * of.speed_days + raw * min(days, of.receipts_days)
    return Plan(
        events_per_second=average,
        peak_events_per_second=peak,
        cores=cores,
        memory_gb=LEAST_MEMORY_GB + (cores - LEAST_CORES) * MEMORY_GB_PER_CORE,
        partitions=max(LEAST_PARTITIONS, cores, ceil(peak * GROWTH / EVENTS_PER_PARTITION)),
        kafka_gb=kafka * of.kafka_days * of.copies / GB,
        master_gb=master * days / GB,
        cassandra_gb=cassandra * of.copies * CASSANDRA_SPARE / GB,
        rebuild_minutes=of.events_per_day * days / REBUILT_PER_CORE_SECOND / cores / 60,
    )
