"""How OpenAPI describes the responses: each type is a component, and each operation refers to its own."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from serving_layer.responses.alerts import (
    AlertDetail,
    AlertPage,
    AlertRule,
    AlertRuleList,
    AlertRuleVersions,
    RulePreview,
)
from serving_layer.responses.dead_letters import DeadLetter, DeadLetterPage, EventOutcomes, Replayed
from serving_layer.responses.encoding import JSON, Problem
from serving_layer.responses.health import Freshness, Health, Readiness
from serving_layer.responses.master_data import LoadedProducts, LoadedTargets, ProductList
from serving_layer.responses.metrics import CellsResponse, IndexResponse, MetricList, MetricResponse, MetricsResponse
from serving_layer.responses.publications import (
    CorrectionPage,
    PublicationPage,
    Recompute,
    RecomputeList,
    RolledBack,
    StartedRecompute,
)
from serving_layer.responses.reports import Report
from serving_layer.responses.saved import (
    AnnotationEntry,
    AnnotationPage,
    LoadedAnnotations,
    SavedViewEntry,
    SavedViewList,
    ShareEntry,
    ShareList,
)
from serving_layer.responses.sensors import SensorList
from serving_layer.responses.stores import ReceiptPage, StoreFloorPlan, StoreList
from serving_layer.responses.webhooks import SkippedBlocker, Webhook, WebhookPage, WebhookTrial

Schema = dict[str, Any]
Responses = dict[int | str, dict[str, Any]]
MODELS: tuple[type[msgspec.Struct], ...] = (
    AlertDetail,
    AlertPage,
    AlertRule,
    AlertRuleList,
    AlertRuleVersions,
    AnnotationEntry,
    AnnotationPage,
    CellsResponse,
    CorrectionPage,
    DeadLetter,
    DeadLetterPage,
    EventOutcomes,
    Freshness,
    Health,
    IndexResponse,
    LoadedAnnotations,
    LoadedProducts,
    LoadedTargets,
    MetricList,
    MetricResponse,
    MetricsResponse,
    Problem,
    ProductList,
    PublicationPage,
    Readiness,
    ReceiptPage,
    Recompute,
    RecomputeList,
    Replayed,
    Report,
    RolledBack,
    RulePreview,
    SavedViewEntry,
    SavedViewList,
    SensorList,
    ShareEntry,
    ShareList,
    SkippedBlocker,
    StartedRecompute,
    StoreFloorPlan,
    StoreList,
    Webhook,
    WebhookPage,
    WebhookTrial,
)
"""Every body that an operation responds with."""
NOT_MODIFIED = "The caller has this answer: `If-None-Match` names its `ETag`."
_REF = "#/components/schemas/{name}"


def returns(
    *models: type[msgspec.Struct],
    status: HTTPStatus | Sequence[HTTPStatus] = HTTPStatus.OK,
    description: str = "Successful response.",
    example: Mapping[str, object] | None = None,
) -> Responses:
    """For `responses=` of a route: its body is one of these models, which the route encodes itself."""
    content: Schema = {"schema": schema_of(*models)}
    if example is not None:
        content["example"] = example
    statuses = [status] if isinstance(status, HTTPStatus) else status
    return {each: {"description": description, "content": {JSON: dict(content)}} for each in statuses}


def or_not_modified(responses: Responses) -> Responses:
    """The same for a route that responds with 304 to a caller who has the answer already."""
    return responses | {HTTPStatus.NOT_MODIFIED: {"description": NOT_MODIFIED}}


def schema_of(*models: type[msgspec.Struct]) -> Schema:
    """A reference to the component of the model, or to one of several."""
    refs = [{"$ref": _REF.format(name=model.__name__)} for model in models]
    return refs[0] if len(refs) == 1 else {"anyOf": refs}


def components() -> dict[str, Schema]:
    """The schema of every model, and of every part of one, by name."""
    _, found = msgspec.json.schema_components(MODELS, ref_template=_REF)
    return {name: _as_encoded(schema) for name, schema in found.items()}


def _as_encoded(schema: Any) -> Any:  # noqa: ANN401 - JSON Schema
    """As `encode` writes it: a Decimal is a number, not a text; an integer or a number is a number."""
    if isinstance(schema, list):
        return [_as_encoded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "decimal":
        return {**{name: each for name, each in schema.items() if name != "format"}, "type": "number"}
    found = {name: _as_encoded(each) for name, each in schema.items()}
    if "anyOf" in found:
        found["anyOf"] = _without_repeats(found["anyOf"])
    return found


def _without_repeats(choices: list[Schema]) -> list[Schema]:
    number: Schema = {"type": "number"}
    found: list[Schema] = []
    for each in choices:
        if each not in found and not (each == {"type": "integer"} and number in choices):
            found.append(each)
    return found
