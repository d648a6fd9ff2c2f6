"""`galatea views`: the views that are computed."""

from deploy.console import print_json, print_table
from galatea.cli.common.options import AsJson
from views import registered_views


def views(as_json: AsJson = False) -> None:
    """List every view with its source, dimensions and question; `--json` also lists its states."""
    listed = [
        {
            "view": view.name,
            "question": view.question,
            "source": view.source.topic,
            "dimensions": list(view.dimensions),
            "states": list(view.columns),
            "definition": view.definition_hash,
        }
        for view in registered_views()
    ]
    if as_json:
        print_json({"views": listed})
        return
    print_table(
        ("view", "source", "dimensions", "question"),
        [
            (view.name, view.source.topic, ", ".join(view.dimensions), view.question.partition("\n\n")[0])
            for view in registered_views()
        ],
    )
