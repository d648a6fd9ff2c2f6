"""What REST answers with, as types: one module per topic, and `schemas` for how OpenAPI describes them.

Handlers build these records and `encode` them; OpenAPI, the pages and the tests read the same declarations. The order
of the fields is the order in the JSON. A field that is `UNSET` is left out, a field that is None is written as null.
"""
