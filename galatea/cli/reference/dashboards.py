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
    """

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    description: str = ""


@dataclass(frozen=True)
class Dashboard:
    """A page of charts.

    Attributes:
        uid: identifies it; also the name of its file.
        title: its name.
        source: the kind of data source that all of its panels read.
        panels: in order.
        variables: further variables by name: SQL that lists their values.
    """

    uid: str
    title: str
    source: Literal["prometheus", "grafana-postgresql-datasource"]
    panels: Sequence[Panel]
    variables: Mapping[str, str] = field(default_factory=dict)

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
            "refresh": "10s",
            "time": {"from": "now-6h" if self.source == "prometheus" else "now-28d", "to": "now"},
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
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
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


def rate(metric: str, *by: str) -> str:
    """PromQL of how much a counter grows in a second, added up by labels."""
    return f"sum by ({', '.join(by)}) (rate({metric}[$__rate_interval]))"


def grown(metric: str, *by: str) -> str:
    """PromQL of how much a counter grew in an hour, added up by labels."""
    return f"sum by ({', '.join(by)}) (increase({metric}[1h]))"


def quantile(share: float, metric: str, *by: str) -> str:
    """PromQL of a quantile of a histogram, by labels."""
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', 'le', *by)})"


def sql(text: str) -> Mapping[str, str]:
    """The only statement of a panel."""
    return {"A": " ".join(text.split())}


REQUESTS, STATEMENTS = "galatea_request_seconds", "galatea_sql_statement_seconds"
STACK = Dashboard(
    "galatea-stack",
    "Galatea: stack",
    "prometheus",
    [
        Panel("Components that run", {"{{component}}": "galatea_component_running"}, kind="stat", width=16, height=5),
        Panel("Cassandra responds", {"Cassandra": "galatea_cassandra_up"}, kind="stat", width=4, height=5),
        Panel("Active alarms", {"alarms": "sum(galatea_alarm)"}, kind="stat", width=4, height=5),
        Panel(
            "Alarms",
            {"{{name}}": "galatea_alarm > 0"},
            kind="state-timeline",
            width=24,
            height=6,
            description="Each has a runbook: docs/how-to/runbooks.md.",
        ),
        Panel("Requests", {"{{status}}": rate(f"{REQUESTS}_count", "status")}, "reqps"),
        Panel("Duration of requests", {"p50": quantile(0.5, REQUESTS), "p99": quantile(0.99, REQUESTS)}, "s"),
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
                "REST": "galatea_connections",
                "live followers": "galatea_live_followers",
                "SQL": "galatea_sql_connections",
            },
        ),
        Panel(
            "In flight",
            {
                "requests": "galatea_requests_in_flight",
                "SQL statements": "galatea_sql_statements_running",
                "events to the broker": "galatea_producer_inflight_records",
            },
        ),
        Panel("Memory", {"{{component}}": 'process_resident_memory_bytes{component!=""}'}, "bytes"),
        Panel(
            "Processor",
            {"{{component}}": 'rate(process_cpu_seconds_total{component!=""}[$__rate_interval])'},
            description="In cores.",
        ),
        Panel("Free disk", {"fullest disk": "galatea_disk_free_bytes"}, "bytes", width=24, height=6),
    ],
)
FRESHNESS = Dashboard(
    "galatea-freshness",
    "Galatea: cut and freshness",
    "prometheus",
    [
        Panel("Publication", {"publication": "galatea_publications_total"}, kind="stat", width=6, height=5),
        Panel("Age of the cut", {"cut": "galatea_cut_age_seconds"}, "s", "stat", 6, 5),
        Panel("Age of the newest event in answers", {"speed": "galatea_speed_as_of_age_seconds"}, "s", "stat", 6, 5),
        Panel(
            "Cells that the newest publication corrected",
            {"{{cause}}": "galatea_corrections"},
            kind="stat",
            width=6,
            height=5,
            description="`unexplained` has to be zero.",
        ),
        Panel("Lag in records", {"{{reader}} {{topic}}": "sum by (reader, topic) (galatea_lag_records)"}),
        Panel("Lag in seconds", {"{{reader}} {{topic}}": "max by (reader, topic) (galatea_lag_seconds)"}, "s"),
        Panel(
            "Duration of micro-batches, p99",
            {"{{reader}}": quantile(0.99, "galatea_micro_batch_seconds", "reader")},
            "s",
        ),
        Panel("Records read", {"{{reader}} {{topic}}": rate("galatea_position", "reader", "topic")}, "rps"),
        Panel(
            "Archived",
            {"events": rate("galatea_events_total"), "dead letters": rate("galatea_dead_letters_total")},
            "eps",
        ),
        Panel(
            "Dead letters of the last hour",
            {"{{topic}}, {{reason}}": grown("galatea_dead_letters_total", "topic", "reason")},
        ),
        Panel("Ages", {"cut": "galatea_cut_age_seconds", "speed": "galatea_speed_as_of_age_seconds"}, "s"),
        Panel(
            "Generation of the speed layer",
            {"served": "galatea_generation", "written": "galatea_speed_generation"},
            description="They differ while a new one catches up.",
        ),
    ],
)
ALERTS = Dashboard(
    "galatea-alerts",
    "Galatea: alerts and webhooks",
    "prometheus",
    [
        Panel("Alerts of the last hour", {"{{kind}}": grown("galatea_alerts_emitted_total", "kind")}),
        Panel(
            "Corrected alerts of the last hour",
            {"{{kind}}, {{cause}}": grown("galatea_alert_corrections_total", "kind", "cause")},
        ),
        Panel("Age of the newest evaluated event", {"alerts": "galatea_alerts_as_of_age_seconds"}, "s"),
        Panel("Webhook endpoints", {"{{state}}": "galatea_webhook_endpoints"}),
        Panel("Webhook deliveries", {"{{outcome}}": rate("galatea_webhook_alerts_total", "outcome")}, "ops"),
        Panel("Age of the oldest alert that waits", {"alert": "galatea_webhook_lag_seconds"}, "s"),
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
                select day::timestamp as time, sum(net_sales) as net_sales from sales_day
                where $__timeFilter(day::timestamp) group by day order by day
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
                select s.store, t.name, sum(s.net_sales) as net_sales, sum(s.receipts) as receipts
                from sales_day s join stores t on t.store = s.store
                where $__timeFilter(s.day::timestamp) group by s.store, t.name order by net_sales desc
            """),
            kind="table",
        ),
        Panel(
            "Products",
            sql("""
                select p.title, sum(s.net_sales) as net_sales
                from sales_by_sku_day s left join products p on p.sku = s.sku
                where $__timeFilter(s.day::timestamp) group by p.title order by net_sales desc limit 20
            """),
            kind="table",
        ),
    ],
)
STORE = Dashboard(
    "galatea-store",
    "Galatea: a store's day",
    "grafana-postgresql-datasource",
    [
        Panel(
            "Net sales per quarter of an hour",
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
            "People who came in, per hour",
            sql("""
                select start as time, sum(traffic_in) as people from traffic_hour
                where store = '$store' and $__timeFilter(start) group by start order by start
            """),
        ),
    ],
    {"store": "select store from stores order by store"},
)
DASHBOARDS = (STACK, FRESHNESS, ALERTS, TENANT, STORE)
