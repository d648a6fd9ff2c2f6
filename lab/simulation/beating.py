"""`sensor_heartbeats`: every minute each sensor whose silence could mean nothing says that it is alive."""

from lab.simulation.clock import MINUTE_MS
from lab.simulation.equipment import simulated
from lab.simulation.record import Records, Wire
from lab.simulation.shop_day import ShopDay
from master_dataset.sources.sensor_heartbeats import WATCHED


def sensor_heartbeats(day: ShopDay) -> Records:
    """Beat through the whole day, open or not."""
    wire = Wire(day, "sensor_heartbeats")
    for source in WATCHED:
        for sensor in simulated(day.store, source):
            for start in range(day.begins, day.ends, MINUTE_MS):
                yield wire.record(start, sensor.id, {"source": source, "interval_ms": MINUTE_MS}, start + MINUTE_MS)
