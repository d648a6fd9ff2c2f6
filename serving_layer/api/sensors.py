"""`/v1/sensors`: the health of registered sensors."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional_requests import conditional_response
from serving_layer.api.parameters import (
    AfterToken,
    AsOfNumber,
    NamedRange,
    PartialFlag,
    RangeEnd,
    RangeStart,
    StoreIds,
)
from serving_layer.api.staleness import AtLeastToken, MaxStaleness, read_answer_version
from serving_layer.caching import etag
from serving_layer.query.ranges import AskedRange
from serving_layer.query.resolve import Hours
from serving_layer.query.sensor_health import SILENT_AFTER, STORES_PER_PAGE, USUAL_START, SensorsRequest
from serving_layer.query.stores import MOST_STORES, PageRequest, read_token
from serving_layer.responses.encoding import JSON
from serving_layer.responses.schemas import or_not_modified, returns
from serving_layer.responses.sensors import SensorList, SensorState

router = APIRouter(prefix="/v1", tags=["state"])
MINUTES_OF_A_DAY = 1440


class SensorsQuery(BaseModel):
    """Query parameters of sensors: up to 31 business days, by default the last seven with today."""

    model_config = ConfigDict(extra="forbid")

    store: StoreIds = []
    start: RangeStart = None
    end: RangeEnd = None
    range: NamedRange = None
    state: list[SensorState] = Field(
        [], max_length=5, description="Only sensors in this state; repeated: in one of them."
    )
    hours: Hours = Field("all", description="Which time counts for coverage: all, or only inside the opening hours.")
    silent_after: int = Field(
        SILENT_AFTER,
        ge=15,
        le=MINUTES_OF_A_DAY,
        description="A sensor is silent after so many open minutes without a signal.",
    )
    partial: PartialFlag = False
    as_of: AsOfNumber = None
    at_least: AtLeastToken = None
    max_staleness: MaxStaleness = None
    limit: int = Field(
        STORES_PER_PAGE, ge=1, le=MOST_STORES, description="Number of stores per page, in order of their ids."
    )
    after: AfterToken = None

    def to_request(self) -> SensorsRequest:
        """Return the request to the query service.

        Raises:
            ArgumentMissingError: there is a `to` alone.
            BadQuestionError: an argument cannot be read.
        """
        start = USUAL_START if (self.start, self.end, self.range) == (None, None, None) else self.start
        AskedRange(start, self.end, self.range).refuse_incomplete()
        return SensorsRequest(
            tuple(self.store),
            start,
            self.end,
            self.range,
            tuple(self.state),
            self.hours,
            self.silent_after,
            self.partial,
            self.as_of,
            PageRequest(self.limit, None if self.after is None else read_token(self.after)),
        )


@router.get("/sensors", operation_id="list_sensors", responses=or_not_modified(returns(SensorList)))
async def list_sensors(
    request: Request, query: Annotated[SensorsQuery, Query()], answers: AnswersOf, caller: Reader
) -> Response:
    """The health of registered sensors: last signal, coverage and drift by business day, of a page of stores.

    States: `ok`; `gaps`, alive for less than 95 % of the time; `silent`, no signal for longer than `silent_after` while
    the store was open; `never`, no signal in the range at all; `unknown`. A signal is known to its 15-minute window.
    Sensors whose registration ended before the range, or begins after it, are left out. With `state`, a page may have
    no sensors although more follow.
    """
    sensors = query.to_request()
    read = await read_answer_version(request, answers, sensors, caller, query)
    version = read.version
    tag = etag(("sensors", sensors), caller.visibility_scope, version.key, answers.catalogue.fingerprint)

    async def respond() -> Response:
        return Response(await answers.sensors(sensors, version, caller), media_type=JSON)

    return await conditional_response(request, tag, respond, read.provenance, read.headers)
