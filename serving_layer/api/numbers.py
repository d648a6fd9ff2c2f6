"""Numbers of publications, as they are asked for."""

from typing import Annotated

from pydantic import Field

from serving_layer.admin.publication_entry import GREATEST

Number = Annotated[int, Field(ge=0, le=GREATEST)]
AsOfNumber = Annotated[
    int | None,
    Field(ge=0, le=GREATEST, description="Answer from this publication alone, exactly as it was published."),
]
