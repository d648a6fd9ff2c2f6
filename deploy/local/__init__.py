"""The local stack: real parts as supervised child processes, no Docker."""
