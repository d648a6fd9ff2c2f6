"""Apache Superset reads Galatea: `python superset_client.py FOLDER URI`, in an environment that has Superset.

It adds the database and a dataset, draws a chart, refreshes it, and prints what it saw as JSON.
"""

import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

TABLE, SCHEMA = "sales_day", "public"
CONFIG = """
SECRET_KEY = "only for a test, on this machine only"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
"""


def main(folder: Path, uri: str) -> dict[str, Any]:
    """Do it, with Superset's own data in the folder."""
    config = folder / "superset_config.py"
    config.write_text(CONFIG.format(folder=folder))
    os.environ["SUPERSET_CONFIG_PATH"] = str(config)
    from superset.app import create_app  # noqa: PLC0415 - reads the configuration

    with create_app().app_context():
        return seen(uri)


def seen(uri: str) -> dict[str, Any]:
    """What Superset sees of the database, and the data of its charts."""
    from flask import g  # noqa: PLC0415 - Superset's, as all below
    from flask_appbuilder import Model  # noqa: PLC0415
    from superset import db, security_manager  # noqa: PLC0415
    from superset.commands.database.test_connection import TestConnectionDatabaseCommand  # noqa: PLC0415
    from superset.connectors.sqla.models import SqlaTable  # noqa: PLC0415
    from superset.models.core import Database  # noqa: PLC0415
    from superset.sql.parse import Table  # noqa: PLC0415

    Model.metadata.create_all(db.engine)
    role = security_manager.add_role("Admin")
    g.user = security_manager.add_user("admin", "a", "user", "admin@example.com", role, "a password")
    database = Database(database_name="galatea")
    database.set_sqlalchemy_uri(uri)
    db.session.add(database)
    db.session.commit()
    TestConnectionDatabaseCommand({"sqlalchemy_uri": uri, "database_name": "another"}).run()
    dataset = SqlaTable(table_name=TABLE, schema=SCHEMA, database=database)
    db.session.add(dataset)
    db.session.commit()
    dataset.fetch_metadata()
    db.session.commit()

    total = {"expressionType": "SQL", "sqlExpression": "SUM(net_sales)", "label": "total"}
    query = {
        "granularity": "day",
        "from_dttm": datetime(2026, 1, 1),  # noqa: DTZ001 - as Superset makes it
        "to_dttm": datetime(2027, 1, 1),  # noqa: DTZ001 - likewise
        "columns": ["store"],
        "metrics": [total],
        "filter": [{"col": "store", "op": "IN", "val": ["1", "2"]}],
        "is_timeseries": True,
        "orderby": [],
        "extras": {"time_grain_sqla": "P1D"},
        "row_limit": 100,
    }

    def chart(**changed: Any) -> list[list[str]]:
        result = dataset.query({**query, **changed})
        assert result.error_message is None, (result.error_message, result.query)
        return [[str(value).split(" ")[0] for value in row] for row in result.df.itertuples(index=False)]

    return {
        "tables": sorted(name for name, *_ in database.get_all_table_names_in_schema(None, SCHEMA)),
        "columns": {each["column_name"]: str(each["type"]) for each in database.get_columns(Table(TABLE, SCHEMA))},
        "chart": chart(),
        "refreshed": chart(),
        "by_month": chart(extras={"time_grain_sqla": "P1M"}, columns=[]),
        "values": list(dataset.values_for_column("store")),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), sys.argv[2])) + "\n")
