"""A slow webhook receiver: `python -m benchmarks.slow_receiver PORT SECONDS FILE`.

Each answered call is a line of the file: when it arrived, when it was answered, its key and its alerts.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import TextIO

import orjson

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


async def serve(port: int, seconds: float, file: TextIO) -> None:
    """Until the process is ended."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                came = time.time()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                alerts = orjson.loads(await reader.readexactly(int(fields["content-length"])))["alerts"]
                await asyncio.sleep(seconds)
                payloads = [[each["store"], each["value"], each["alert_id"]] for each in alerts]
                file.write(orjson.dumps([came, time.time(), fields["idempotency-key"], payloads]).decode() + "\n")
                file.flush()  # before the response, so that every acknowledged call is in the file
                writer.write(ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    with Path(sys.argv[3]).open("w", encoding="utf-8") as kept:
        asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), kept))
