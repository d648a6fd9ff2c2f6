"""All seeded bugs, in the order in which they were thought of."""

from tests.seeded.bugs_of_cells import BUGS_OF_CELLS
from tests.seeded.bugs_of_delivery import BUGS_OF_DELIVERY
from tests.seeded.bugs_of_the_cut import BUGS_OF_THE_CUT

BUGS = (*BUGS_OF_DELIVERY, *BUGS_OF_CELLS, *BUGS_OF_THE_CUT)
