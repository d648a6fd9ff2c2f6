"""`galatea views`: the views that are computed."""

from deploy.console import print_json, print_table
from galatea.cli.common.options import AsJson
from views import registered_views


def views(as_json: AsJson = False) -> None:
    """List every view with its question, source, dimensions and states."""
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
    print_table(("view", "source", "question"), [(each["view"], each["source"], each["question"]) for each in listed])
