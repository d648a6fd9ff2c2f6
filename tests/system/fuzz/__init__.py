"""Fuzzing of everything that takes input from outside: `python -m tests.system.fuzz sql --minutes 60 --seed 7`.

    target.py     what a target is: examples, and a check that accepts an input, refuses it by name, or raises
    mutations.py  what becomes of valid inputs
    worker.py     a process that mutates and checks until its time is over, and shrinks what fails
    watchdog.py   the process beside it, which ends it when an input hangs or fills the memory
    targets/      one module for each border of the platform

Inputs that failed are kept in `tests/support/corpus/<target>`, and `tests/fast/unit/fuzz` checks all of them again.
"""
