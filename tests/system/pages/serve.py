"""Serves the invented shops on loopback, to look at the pages: `python -m tests.system.pages.serve PORT`."""

import sys

import uvicorn

from tests.system.pages.shops import invented

if __name__ == "__main__":
    uvicorn.run(invented().app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
