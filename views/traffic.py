"""Who came in, and by which door? Staff are counted separately where the sensor recognizes them."""

from master_dataset.sources.people_counts import PEOPLE_COUNTS
from views.core import Sum, View
from views.core.view import flag_counts

TRAFFIC = View(
    name="traffic",
    source=PEOPLE_COUNTS,
    dimensions={"line": "line"},
    metrics={
        "people_in": Sum("people_in"),
        "people_out": Sum("people_out"),
        "group_in": Sum("group_in"),
        "group_out": Sum("group_out"),
        "grouped_in": Sum("if(group_in is null, null, people_in)"),
        "staff_in": Sum("staff_in"),
        "staff_out": Sum("staff_out"),
        "unsplit": Sum("if(staff_in is null and staff_out is null, 1, 0)"),
        "covered_ms": Sum("interval_ms"),
        **flag_counts(PEOPLE_COUNTS),
    },
)
