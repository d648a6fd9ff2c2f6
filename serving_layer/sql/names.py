"""What clients know this server by."""

DATABASE, PUBLIC, PG_CATALOG, INFORMATION = "galatea", "public", "pg_catalog", "information_schema"
SCHEMAS = (PUBLIC, PG_CATALOG, INFORMATION)
SERVER_VERSION = "16.0"
"""The version of PostgreSQL whose catalogs clients find here."""
