"""Asynchronous readers of the tables in Cassandra (`deploy/schema`)."""

from serving_layer.tables.alerts import AlertTables, RuleTables
from serving_layer.tables.async_session import AsyncSession
from serving_layer.tables.operations import KeyTables, LedgerTables, RecomputeTables, WatchTables
from serving_layer.tables.processes import RateTables, SessionTables
from serving_layer.tables.readers import (
    BatchTables,
    PublishedTables,
    SpeedTables,
    StoreTables,
    TopicTables,
)
from serving_layer.tables.receipts import ReceiptTables
from serving_layer.tables.saved import AnnotationTables, SavedViewTables, ShareTables

__all__ = [
    "AlertTables",
    "AnnotationTables",
    "AsyncSession",
    "BatchTables",
    "KeyTables",
    "LedgerTables",
    "PublishedTables",
    "RateTables",
    "ReceiptTables",
    "RecomputeTables",
    "RuleTables",
    "SavedViewTables",
    "SessionTables",
    "ShareTables",
    "SpeedTables",
    "StoreTables",
    "TopicTables",
    "WatchTables",
]
