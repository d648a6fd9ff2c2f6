"""The readers over Cassandra's tables (`deploy/schema`)."""

from serving_layer.tables.alerts import AlertTables
from serving_layer.tables.batch import BatchTables
from serving_layer.tables.bridge import Bridge
from serving_layer.tables.keys import KeyTables
from serving_layer.tables.ledgers import LedgerTables
from serving_layer.tables.published import PublishedTables
from serving_layer.tables.receipts import ReceiptTables
from serving_layer.tables.recomputes import RecomputeTables
from serving_layer.tables.rules import RuleTables
from serving_layer.tables.speed import SpeedTables
from serving_layer.tables.stores import StoreTables
from serving_layer.tables.watch import WatchTables

__all__ = [
    "AlertTables",
    "BatchTables",
    "Bridge",
    "KeyTables",
    "LedgerTables",
    "PublishedTables",
    "ReceiptTables",
    "RecomputeTables",
    "RuleTables",
    "SpeedTables",
    "StoreTables",
    "WatchTables",
]
