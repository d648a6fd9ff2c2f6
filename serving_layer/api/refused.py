"""How many requests were refused, by the code of the problem. Never by caller, store or question."""

from prometheus_client import Counter

REFUSED = Counter("galatea_refusals", "Requests that were refused, by the code of the problem.", ("code",))
