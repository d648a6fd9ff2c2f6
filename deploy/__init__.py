"""How the parts are put together: settings, command line, local stack, processes.

Only this package reads the environment.
"""
