"""The limit on file descriptors of this process: raised for the gateway, as it was for programs it starts."""

import sys

MAX_DESCRIPTORS = 65_536
"""How far the soft limit is raised at most; a hard limit may be a thousand times that."""

MAX_SPARE, SPARE_SHARE = 32, 8
"""How many descriptors are kept for when no other is free: so many, but at most this part of all."""

_original: int | None = None


def raise_descriptor_limit(most: int = MAX_DESCRIPTORS) -> int | None:
    """Raise the soft limit towards the hard limit; return what it is now, None where there is none.

    Only for a process that is the gateway's own: others may rely on the limit they set themselves.
    """
    if sys.platform == "win32":
        return None
    import resource

    global _original  # noqa: PLW0603 - a limit of the process, of which there is one
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return None if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # some systems have a lower limit than they say
        return soft
    _original = _original or soft
    return wanted


def original_soft_limit() -> int:
    """Return the soft limit to give to programs, as it was before it was raised; 0 where it was not.

    Programs that use select() cannot work with descriptors above 1,023, and expect not to get any.
    """
    return _original or 0


def soft_limit() -> int | None:
    """Return how many descriptors this process may have; None where there is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def spare_descriptors() -> int:
    """Return how many descriptors to keep for when no other is free."""
    soft = soft_limit()
    return MAX_SPARE if soft is None else min(MAX_SPARE, max(2, soft // SPARE_SHARE))
