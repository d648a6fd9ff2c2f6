"""Grafana dashboards, written into `deploy/monitoring/dashboards`: three of metrics, two of a tenant's data by SQL.

Panels are laid out from left to right, in rows of 24 columns. Data sources are variables, so that a dashboard can be
imported anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

COLUMNS = 24
SCHEMA_VERSION = 39
"""Of Grafana 11; newer ones read it."""
_LAG_RECORDS = "sum by (reader, topic) (max by (reader, topic, partition) (galatea_lag_records))"
"""Several archives measure the same partitions."""
Kind = Literal["timeseries", "stat", "table", "state-timeline", "barchart"]


@dataclass(frozen=True)
class Panel:
    """One chart.

    Attributes:
        title: what it shows.
        queries: PromQL or SQL, by the legend of their series; `{{label}}` of PromQL stands for the value of a label.
        unit: Grafana's name of the unit; `short` for a number.
        kind: how it is drawn.
        width: in columns.
        height: in Grafana's rows of 30 pixels.
        description: what to look for; shown when the mouse is over the title.
        steps: of a number that is shown alone, from which value on it has which colour; the first has no value.
        words: words that are shown instead of values.
    """

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    description: str = ""
    steps: Sequence[tuple[float | None, str]] = ((None, "blue"),)
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Dashboard:
    """A page of charts.

    Attributes:
        uid: identifies it; also the name of its file.
        title: its name.
        source: the kind of data source that all of its panels read.
        panels: in order.
        variables: further variables by name: SQL that lists their values.
        period: how far back it looks at first.
    """

    uid: str
    title: str
    source: Literal["prometheus", "grafana-postgresql-datasource"]
    panels: Sequence[Panel]
    variables: Mapping[str, str] = field(default_factory=dict)
    period: str = "6h"

    def json(self) -> dict[str, Any]:
        """As Grafana imports it."""
        source = {"type": self.source, "uid": "${source}"}
        panels, x, y, row = list[dict[str, Any]](), 0, 0, 0
        for number, panel in enumerate(self.panels, start=1):
            if x + panel.width > COLUMNS:
                x, y, row = 0, y + row, 0
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            panels.append(_panel(panel, number, place, source))
            x, row = x + panel.width, max(row, panel.height)
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["galatea"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "refresh": "10s" if self.source == "prometheus" else "1m",
            "time": {"from": f"now-{self.period}", "to": "now"},
            "timezone": "browser" if self.source == "prometheus" else "utc",  # business days must not be shifted
            "templating": {
                "list": [_source_variable(self.source), *(_variable(*each, source) for each in self.variables.items())]
            },
            "panels": panels,
        }


def _panel(panel: Panel, number: int, place: Mapping[str, int], source: Mapping[str, str]) -> dict[str, Any]:
    is_sql = source["type"] != "prometheus"
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": source,
            **(_sql(panel, query) if is_sql else _promql(panel, query, legend)),
        }
        for at, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "gridPos": place,
        "datasource": source,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "thresholds": {
                    "mode": "absolute",
                    "steps": [{"value": value, "color": colour} for value, colour in panel.steps],
                },
                "mappings": [
                    {"type": "value", "options": {value: {"text": text, "index": at}}}
                    for at, (value, text) in enumerate(panel.words.items())
                ],
            },
            "overrides": [],
        },
        "targets": targets,
    }


def _promql(panel: Panel, query: str, legend: str) -> dict[str, Any]:
    is_now = panel.kind in ("stat", "table")
    return {
        "expr": query,
        "legendFormat": legend,
        "instant": is_now,
        "range": not is_now,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _sql(panel: Panel, query: str) -> dict[str, Any]:
    return {"rawSql": query, "rawQuery": True, "format": "time_series" if panel.kind == "timeseries" else "table"}


def _source_variable(kind: str) -> dict[str, Any]:
    return {"name": "source", "label": "Data source", "type": "datasource", "query": kind}


def _variable(name: str, query: str, source: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": source,
        "query": query,
        "refresh": 1,
        "sort": 3,
    }


def rate(metric: str, *by: str, only: str = "") -> str:
    """PromQL of how much a counter grows in a second, added up by labels. `only`: which series of it."""
    return f"sum by ({', '.join(by)}) (rate({metric}{only}[$__rate_interval]))"


def grown(metric: str, *by: str) -> str:
    """PromQL of how much a counter grew in an hour, added up by labels."""
    return f"sum by ({', '.join(by)}) (increase({metric}[1h]))"


def quantile(share: float, metric: str, *by: str, only: str = "") -> str:
    """PromQL of a quantile of a histogram, by labels. `only`: of which series of it."""
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', 'le', *by, only=only)})"


NO_LIVE = '{route!~"/v1/live/.*"}'


def sql(text: str) -> Mapping[str, str]:
    """The only statement of a panel."""
    return {"A": " ".join(text.split())}


REQUESTS, STATEMENTS = "galatea_request_seconds", "galatea_sql_statement_seconds"
HAS_TO_RUN = ((None, "red"), (1, "green"))
HAS_TO_BE_NONE = ((None, "green"), (1, "red"))
UP = {"0": "down", "1": "up"}
STACK = Dashboard(
    "galatea-stack",
    "Galatea: stack",
    "prometheus",
    [
        Panel(
            "Running components",
            {"{{component}}": "max by (component) (galatea_component_running)"},
            kind="stat",
            width=16,
            height=5,
            description="Known under `galatea up` alone.",
            steps=HAS_TO_RUN,
            words=UP,
        ),
        Panel(
            "Cassandra",
            {"Cassandra": "min(galatea_cassandra_up)"},
            kind="stat",
            width=4,
            height=5,
            steps=HAS_TO_RUN,
            words=UP,
        ),
        Panel(
            "Active alarms",
            {"alarms": "sum(max by (name) (galatea_alarm))"},
            kind="stat",
            width=4,
            height=5,
            steps=HAS_TO_BE_NONE,
        ),
        Panel(
            "Alarms",
            {
                "{{name}}": "max by (name) (galatea_alarm) "
                "and on (name) (max by (name) (max_over_time(galatea_alarm[$__range] @ end())) > 0)"
            },
            kind="state-timeline",
            width=24,
            height=6,
            description="Those of the period. Each has a runbook: docs/how-to/runbooks.md.",
            steps=HAS_TO_BE_NONE,
            words={"0": "ok", "1": "active"},
        ),
        Panel("Requests", {"{{status}}": rate(f"{REQUESTS}_count", "status")}, "reqps"),
        Panel(
            "Duration of requests",
            {"p50": quantile(0.5, REQUESTS, only=NO_LIVE), "p99": quantile(0.99, REQUESTS, only=NO_LIVE)},
            "s",
            description="Without live updates, which end when their clients leave.",
        ),
        Panel("Refused requests", {"{{code}}": rate("galatea_refusals_total", "code")}, "reqps"),
        Panel(
            "Events over HTTP",
            {"{{source}}, {{outcome}}": rate("galatea_ingested_events_total", "source", "outcome")},
            "eps",
        ),
        Panel("SQL statements", {"{{sqlstate}}": rate("galatea_sql_statements_total", "sqlstate")}, "ops"),
        Panel("Duration of SQL statements", {"p50": quantile(0.5, STATEMENTS), "p99": quantile(0.99, STATEMENTS)}, "s"),
        Panel(
            "Connections",
            {
                "REST": "sum(galatea_connections)",
                "live followers": "sum(galatea_live_followers)",
                "SQL": "sum(galatea_sql_connections)",
            },
        ),
        Panel(
            "In flight",
            {
                "requests": "sum(galatea_requests_in_flight)",
                "SQL statements": "sum(galatea_sql_statements_running)",
                "events to the broker": "sum(galatea_producer_inflight_records)",
            },
        ),
        Panel("Memory", {"{{component}}": 'process_resident_memory_bytes{component!=""}'}, "bytes"),
        Panel(
            "CPU",
            {"{{component}}": 'rate(process_cpu_seconds_total{component!=""}[$__rate_interval])'},
            description="In cores.",
        ),
        Panel("Free disk", {"fullest disk": "min(galatea_disk_free_bytes)"}, "bytes", width=24, height=6),
    ],
)
FRESHNESS = Dashboard(
    "galatea-freshness",
    "Galatea: cut and freshness",
    "prometheus",
    [
        Panel("Publication", {"publication": "max(galatea_publications_total)"}, kind="stat", width=6, height=5),
        Panel(
            "Age of the cut",
            {"cut": "max(galatea_cut_age_seconds)"},
            "s",
            "stat",
            6,
            5,
            steps=((None, "green"), (7200, "red")),
        ),
        Panel(
            "Age of the newest event in answers", {"speed": "max(galatea_speed_as_of_age_seconds)"}, "s", "stat", 6, 5
        ),
        Panel(
            "Cells corrected by the latest publication",
            {"{{cause}}": "max by (cause) (galatea_corrections)"},
            kind="stat",
            width=6,
            height=5,
            description="`unexplained` has to be zero.",
        ),
        Panel("Lag in records", {"{{reader}} {{topic}}": _LAG_RECORDS}),
        Panel("Lag in seconds", {"{{reader}} {{topic}}": "max by (reader, topic) (galatea_lag_seconds)"}, "s"),
        Panel(
            "Duration of micro-batches, p99",
            {"{{reader}}": quantile(0.99, "galatea_micro_batch_seconds", "reader")},
            "s",
        ),
        Panel(
            "Offsets read per second",
            {
                "{{reader}} {{topic}}": "sum by (reader, topic) "
                "(clamp_min(deriv(galatea_position[$__rate_interval]), 0))"
            },
            "rps",
        ),
        Panel(
            "Archived",
            {"events": rate("galatea_events_total"), "dead letters": rate("galatea_dead_letters_total")},
            "eps",
        ),
        Panel(
            "Dead letters in the last hour",
            {"{{topic}}, {{reason}}": grown("galatea_dead_letters_total", "topic", "reason")},
        ),
        Panel("Ages", {"cut": "max(galatea_cut_age_seconds)", "speed": "max(galatea_speed_as_of_age_seconds)"}, "s"),
        Panel(
            "Generation of the speed layer",
            {"served": "max(galatea_generation)", "written": "max(galatea_speed_generation)"},
            description="They differ while a new one catches up.",
        ),
    ],
)
ALERTS = Dashboard(
    "galatea-alerts",
    "Galatea: alerts and webhooks",
    "prometheus",
    [
        Panel("Alerts in the last hour", {"{{kind}}": grown("galatea_alerts_emitted_total", "kind")}),
        Panel(
            "Corrected alerts in the last hour",
            {"{{kind}}, {{cause}}": grown("galatea_alert_corrections_total", "kind", "cause")},
        ),
        Panel("Age of the newest evaluated event", {"alerts": "max(galatea_alerts_as_of_age_seconds)"}, "s"),
        Panel("Webhook endpoints", {"{{state}}": "max by (state) (galatea_webhook_endpoints)"}),
        Panel("Webhook deliveries", {"{{outcome}}": rate("galatea_webhook_alerts_total", "outcome")}, "ops"),
        Panel("Age of the oldest waiting alert", {"alert": "max(galatea_webhook_lag_seconds)"}, "s"),
    ],
)
TENANT = Dashboard(
    "galatea-tenant",
    "Galatea: all stores of a tenant",
    "grafana-postgresql-datasource",
    [
        Panel(
            "Net sales per day",
            sql("""
                select day::timestamp as time, currency as metric, sum(net_sales) as net_sales from sales_day
                where $__timeFilter(day::timestamp) group by day, currency order by day
            """),
            width=16,
        ),
        Panel(
            "Newest publication",
            sql("select publication, cut, published_at from publications order by publication desc limit 1"),
            kind="table",
            width=8,
        ),
        Panel(
            "Stores",
            sql("""
                select s.store, t.name, s.currency, sum(s.net_sales) as net_sales, sum(s.receipts) as receipts
                from sales_day s join stores t on t.store = s.store
                where $__timeFilter(s.day::timestamp) group by s.store, t.name, s.currency order by net_sales desc
            """),
            kind="table",
        ),
        Panel(
            "Products",
            sql("""
                select coalesce(p.title, s.sku) as product, s.currency, sum(s.net_sales) as net_sales
                from sales_by_sku_day s left join products p on p.sku = s.sku
                    and s.day >= coalesce(p.valid_from, s.day) and s.day < coalesce(p.valid_to, s.day + 1)
                where $__timeFilter(s.day::timestamp) group by 1, 2 order by net_sales desc limit 20
            """),
            kind="table",
        ),
    ],
    period="28d",
)
STORE = Dashboard(
    "galatea-store",
    "Galatea: a store's day",
    "grafana-postgresql-datasource",
    [
        Panel(
            "Net sales per 15 minutes",
            sql("""
                select start as time, net_sales from sales_15m
                where store = '$store' and $__timeFilter(start) order by start
            """),
            width=16,
        ),
        Panel(
            "The last seven days",
            sql("""
                select day, net_sales, receipts, final from sales_day
                where store = '$store' order by day desc limit 7
            """),
            kind="table",
            width=8,
        ),
        Panel(
            "Receipts per hour",
            sql("""
                select start as time, receipts from sales_hour
                where store = '$store' and $__timeFilter(start) order by start
            """),
        ),
        Panel(
            "Visitors per hour",
            sql("""
                select start as time, sum(traffic_in) as people from traffic_hour
                where store = '$store' and $__timeFilter(start) group by start order by start
            """),
        ),
    ],
    {"store": "select store from stores order by store"},
    period="24h",
)
DASHBOARDS = (STACK, FRESHNESS, ALERTS, TENANT, STORE)
