"""How many files a process may have open: each connection is one."""

import resource
from contextlib import suppress


def allow_files(most: int) -> None:
    """Let this process have so many files open, as far as the system lets it."""
    now, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if highest == resource.RLIM_INFINITY else min(most, highest)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, highest))
