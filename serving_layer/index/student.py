"""Student's t for two-sided intervals of 95 %, by degrees of freedom."""

PERCENT = 95
TABLE = (
    12.706,
    4.303,
    3.182,
    2.776,
    2.571,
    2.447,
    2.365,
    2.306,
    2.262,
    2.228,
    2.201,
    2.179,
    2.160,
    2.145,
    2.131,
    2.120,
    2.110,
    2.101,
    2.093,
    2.086,
    2.080,
    2.074,
    2.069,
    2.064,
    2.060,
    2.056,
    2.052,
    2.048,
    2.045,
    2.042,
)


def quantile(freedom: int) -> float:
    """For at least one degree of freedom; beyond 30 that of 30, which is a little wider."""
    return TABLE[min(freedom, len(TABLE)) - 1]
