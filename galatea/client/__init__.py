"""The REST client: `from galatea.client import Client, AsyncClient`. It imports nothing else of the platform."""

from galatea.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
