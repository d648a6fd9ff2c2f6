"""`galatea metrics`: the metrics that can be queried."""

from deploy.console import print_json, print_table
from galatea.cli.common.options import AsJson
from serving_layer.query.catalogue import Catalogue
from views import registered_views
from views.metrics import registered_metrics


def metrics(as_json: AsJson = False) -> None:
    """List every metric with its name, unit and formula."""
    catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
    if as_json:
        print_json({"metrics": catalogue.listed()})
        return
    rows = [(metric.id, metric.name, metric.unit, metric.formula.text) for metric in catalogue.metrics.values()]
    print_table(("metric", "name", "unit", "formula"), rows)
