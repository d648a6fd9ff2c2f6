"""Bugs that are put into the product on purpose, one at a time: a check that does not miss one is no check.

A bug is a changed line of a function of the product, or a rule that is taken away from the model. It is there while its
check runs, in this process only. `python -m tests.seeded` lets all be caught, and prints which check caught which.
"""
