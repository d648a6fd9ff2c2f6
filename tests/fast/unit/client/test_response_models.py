"""The client imports nothing of the platform, so its types are compared with the response models here."""

import msgspec
import pytest

from galatea.client import answers, ingest
from galatea.client import publications as client
from serving_layer.responses import dead_letters, health, master_data, metrics, publications, sensors, stores
from views.control.recompute import RecomputeRequest

Struct = type[msgspec.Struct]
TYPES: list[tuple[Struct, Struct]] = [
    (answers.AsOf, metrics.AsOf),
    (answers.ListItem, metrics.ListItem),
    (answers.DaysCompared, metrics.DaysCompared),
    (answers.Point, metrics.Point),
    (answers.TargetDays, metrics.TargetDays),
    (answers.PeriodCompared, metrics.PeriodCompared),
    (answers.Compared, metrics.Compared),
    (answers.Series, metrics.Series),
    (answers.LeftOut, metrics.LeftOut),
    (answers.Holiday, metrics.Holiday),
    (answers.HolidaysUnknown, metrics.HolidaysUnknown),
    (answers.Holidays, metrics.Holidays),
    (answers.WeatherUnits, metrics.WeatherUnits),
    (answers.WeatherRow, metrics.WeatherRow),
    (answers.Weather, metrics.Weather),
    (answers.Answer, metrics.MetricResponse),
    (answers.Answers, metrics.MetricsResponse),
    (answers.Metric, metrics.ListedMetric),
    (answers.Cell, metrics.CellStates),
    (answers.Cells, metrics.CellsResponse),
    (answers.StoreSensor, stores.StoreSensor),
    (answers.StoreZone, stores.StoreZone),
    (answers.Store, stores.RegisteredStore),
    (answers.SensorDay, sensors.SensorDay),
    (answers.SensorHealth, sensors.SensorHealth),
    (answers.Receipt, stores.Receipt),
    (client.ReadPosition, health.ReadPosition),
    (client.ReaderLag, health.ReaderLag),
    (client.ActiveAlarm, health.ActiveAlarm),
    (client.Freshness, health.Freshness),
    (client.ViewCounts, publications.ViewCounts),
    (client.Publication, publications.ListedPublication),
    (client.RecomputeRequest, RecomputeRequest),
    (client.Progress, publications.Done),
    (client.RecomputeProgress, publications.RecomputeProgress),
    (client.RecomputeProblem, publications.RecomputeProblem),
    (client.CauseTotals, publications.CauseTotals),
    (client.CorrectionTotals, publications.CorrectionTotals),
    (client.RecomputedPartition, publications.RecomputedPartition),
    (client.RecomputeReport, publications.RecomputeReport),
    (client.Recompute, publications.Recompute),
    (client.RolledBack, publications.RolledBack),
    (client.Correction, publications.Correction),
    (answers.LoadedFile, master_data.LoadedProducts),
    (answers.LoadedFile, master_data.LoadedTargets),
    (ingest.Outcome, dead_letters.EventOutcome),
]


@pytest.mark.parametrize(("client", "response"), TYPES, ids=lambda each: each.__name__)
def test_every_field_that_the_client_reads_is_one_that_rest_writes(client: Struct, response: Struct) -> None:
    assert set(client.__struct_encode_fields__) <= set(response.__struct_encode_fields__)


@pytest.mark.parametrize(("client", "response"), TYPES, ids=lambda each: each.__name__)
def test_every_field_that_the_client_needs_is_always_there(client: Struct, response: Struct) -> None:
    needed = {each.encode_name for each in msgspec.structs.fields(client) if each.required}

    assert needed <= {each.encode_name for each in msgspec.structs.fields(response) if each.required}
