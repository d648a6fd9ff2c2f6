"""How many copies of a record are enough. Apart from the topics, whose client takes long to load."""


def majority(copies: int) -> int:
    """How many copies have to be written before a record counts as written."""
    return copies // 2 + 1
