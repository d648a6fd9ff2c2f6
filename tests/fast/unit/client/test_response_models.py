"""The client imports nothing of the platform, so its types are compared with the response models here."""

import msgspec
import pytest

from galatea.client import answers, operations
from serving_layer.responses import health as fresh
from serving_layer.responses import metrics, publications, stores

Struct = type[msgspec.Struct]
TYPES: list[tuple[Struct, Struct]] = [
    (answers.AsOf, metrics.AsOf),
    (answers.Point, metrics.Point),
    (answers.Series, metrics.Series),
    (answers.Answer, metrics.MetricResponse),
    (answers.Answers, metrics.MetricsResponse),
    (answers.Cell, metrics.CellStates),
    (answers.Cells, metrics.CellsResponse),
    (answers.Metric, metrics.ListedMetric),
    (answers.Store, stores.RegisteredStore),
    (answers.Receipt, stores.Receipt),
    (answers.Freshness, fresh.Freshness),
    (answers.Publication, publications.ListedPublication),
    (operations.Recompute, publications.Recompute),
    (operations.RolledBack, publications.RolledBack),
    (operations.Correction, publications.Correction),
]


@pytest.mark.parametrize(("client", "response"), TYPES, ids=lambda each: each.__name__)
def test_every_field_that_the_client_reads_is_one_that_rest_writes(client: Struct, response: Struct) -> None:
    assert set(client.__struct_encode_fields__) <= set(response.__struct_encode_fields__)


@pytest.mark.parametrize(("client", "response"), TYPES, ids=lambda each: each.__name__)
def test_every_field_that_the_client_needs_is_always_there(client: Struct, response: Struct) -> None:
    needed = {each.encode_name for each in msgspec.structs.fields(client) if each.required}

    assert needed <= {each.encode_name for each in msgspec.structs.fields(response) if each.required}
