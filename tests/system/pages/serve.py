"""Serve the pages of the sample stores on loopback: `python -m tests.system.pages.serve PORT`."""

import sys

import uvicorn

from tests.system.pages.sample_stores import sample_stack

if __name__ == "__main__":
    uvicorn.run(sample_stack().app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
