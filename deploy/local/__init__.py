"""The local stack: real components as supervised child processes, without Docker."""
