"""Serves the invented shops on loopback, to look at the pages: `python -m tests.pages.serve PORT`."""

import sys

import uvicorn

from tests.pages.shops import RememberedTables, bury, measured, trading_days
from tests.world.asking import Asking
from tests.world.watch import WorldWatch

if __name__ == "__main__":
    world = trading_days()
    watch = WorldWatch(world)
    watch.measured = measured()
    asking = Asking(world, readers=RememberedTables(world).readers, watched=watch)
    bury(asking.letters)
    uvicorn.run(asking.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
