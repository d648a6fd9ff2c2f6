"""Options that many commands have."""

from typing import Annotated

from typer import Option

AsJson = Annotated[bool, Option("--json", help="One JSON object on stdout.")]
By = Annotated[str, Option("--by", help="Author (default: the current user).", show_default=False)]
