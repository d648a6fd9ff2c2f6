"""A typed client for the REST API: `from galatea.client import Client, AsyncClient`.

It imports nothing else of the platform. Errors are in `galatea.client.errors`, the types of answers in
`galatea.client.answers` and `galatea.client.publications`, sending events in `galatea.client.ingest`.
"""

from galatea.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
