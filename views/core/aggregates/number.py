"""What aggregates of a single whole number have in common."""

from views.core.aggregates.aggregate import State


class Number:
    """The state is the number itself."""

    def present(self, state: State) -> int | None:
        """The number."""
        [number] = state
        return None if number is None else int(number)

    def shown(self, state: State) -> int | None:
        """The number."""
        return self.present(state)
