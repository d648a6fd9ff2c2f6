"""Laws are about numbers that are known, however events are split into layers, and be there a publication or none.

Before the first publication, answers say that a value without events is not known: what that changes is a law of its
own, in `tests/fast/unit/serving/test_loading.py`.
"""

from collections.abc import Iterator

import pytest

from serving_layer.store.snapshot import ReadSnapshot


@pytest.fixture(autouse=True, scope="module")
def _everything_is_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadSnapshot, "is_loading", False)
        yield
