"""A view as Airflow's asset: updated whenever a publication has new cells of it."""

from airflow.sdk import Asset

GROUP = "galatea"


def view_asset(view: str) -> Asset:
    """The asset of the view of that name; its event says publication and cut."""
    return Asset(name=f"galatea.{view}", uri=f"galatea://views/{view}", group=GROUP)
