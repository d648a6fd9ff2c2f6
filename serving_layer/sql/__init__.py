"""The SQL component: read-only PostgreSQL protocol over the merged answers of one tenant."""
