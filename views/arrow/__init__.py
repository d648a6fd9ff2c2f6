"""Views counted in Arrow: their Spark SQL evaluated over columns, and the rows that events contribute to cells.

Spark runs the same SQL where cells are verified. What is outside the subset of `expressions` is refused by name.
"""
