"""A recompute from settings: fence, planner, Spark, Cassandra and the speed layer wired together."""
