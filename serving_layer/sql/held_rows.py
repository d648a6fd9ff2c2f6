"""The memory that connections hold: results in cursors and portals, or that are read slowly, texts, and parameters.

DuckDB counts its own memory alone. Without a bound on the rest, a few idle connections of one tenant could take all of
the process.
"""

from collections import Counter, deque
from collections.abc import Sequence
from threading import Lock
from weakref import finalize

from serving_layer.sql.results import SqlStateError, SqlValue

_BYTES_OF_VALUE = 48
"""What Python needs for a value beside its bytes: the object, and its place in a row."""


class Held:
    """So many bytes are counted as long as anything refers to this."""

    def __init__(self, memory: "ResultMemory", tenant: str, size: int) -> None:
        """SqlStateError 53200 if there is no room for them."""
        memory.take(tenant, size)
        finalize(self, memory.free, tenant, [size]).atexit = False


class ResultMemory:
    """How much connections of this process may hold together; those of one tenant have half of it. Thread-safe."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of all tenants."""
        self._most = most_bytes
        self._taken = Counter[str]()
        self._freed = deque[tuple[str, list[int]]]()
        """What is no longer held. A finalizer may run anywhere, also inside the lock, so it only appends."""
        self._lock = Lock()

    def rows(self, tenant: str) -> "HeldRows":
        """The rows of a new result. They are counted until nothing refers to them any more."""
        return HeldRows(self, tenant)

    def hold(self, tenant: str, size: int) -> Held:
        """Count so many bytes until nothing refers to the result any more. SqlStateError 53200."""
        return Held(self, tenant, size)

    def take(self, tenant: str, size: int) -> None:
        """Count so many bytes more. SqlStateError 53200 if there is no room for them."""
        with self._lock:
            while self._freed:
                of, sizes = self._freed.popleft()
                self._taken[of] -= sum(sizes)
            if self._taken[tenant] + size > self._most // 2 or self._taken.total() + size > self._most:
                message = "Open results, prepared statements and parameters use all the memory reserved for them."
                hint = "Close cursors and statements, read results to their end, or choose fewer columns or rows."
                raise SqlStateError("53200", message, hint)
            self._taken[tenant] += size

    def free(self, tenant: str, sizes: list[int]) -> None:
        """Count them no more."""
        self._freed.append((tenant, sizes))


class HeldRows(list[tuple[SqlValue, ...]]):
    """The rows of one result."""

    def __init__(self, memory: ResultMemory, tenant: str) -> None:
        """No rows yet."""
        super().__init__()
        self._memory, self._tenant, self._sizes = memory, tenant, list[int]()
        self._freeing = finalize(self, memory.free, tenant, self._sizes)
        self._freeing.atexit = False

    @property
    def size(self) -> int:
        """The bytes that are counted."""
        return sum(self._sizes)

    def reserve(self, arrow_bytes: int, values: int) -> None:
        """Make room for so many values, and what Arrow needs for them. SqlStateError 53200."""
        needed = arrow_bytes + values * _BYTES_OF_VALUE
        self._memory.take(self._tenant, needed)
        self._sizes.append(needed)

    def release(self) -> None:
        """Forget the rows now: the traceback of an error would hold them until the garbage is collected."""
        self.clear()
        self._freeing()


class PartOfRows(list[tuple[SqlValue, ...]]):
    """Some rows of a result. As long as anything holds them, the result is counted."""

    def __init__(self, rows: Sequence[tuple[SqlValue, ...]], of: Sequence[tuple[SqlValue, ...]]) -> None:
        """`of`: all rows of the result."""
        super().__init__(rows)
        self._of = of
