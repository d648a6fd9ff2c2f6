"""One event loop for the requests of all tests: to make one takes longer than most answers do."""

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
_LOOP = asyncio.new_event_loop()
atexit.register(_LOOP.close)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Like `asyncio.run`: what still runs in the background when `main` has ended is cancelled."""
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(main)
    return _LOOP.run_until_complete(_and_nothing_else(main))


async def _and_nothing_else(main: Coroutine[Any, Any, Result]) -> Result:
    try:
        return await main
    finally:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
