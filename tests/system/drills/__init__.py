"""Faults under load: the real stack, a hostile stream, processes that are killed, and somebody who asks all the while.

One seed fixes the stream, the faults and their order; how the processes interleave it does not.
"""
