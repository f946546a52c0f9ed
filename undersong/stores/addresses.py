"""Addresses of servers, as ``--store`` takes them, and how they are shown."""

from __future__ import annotations

import re

_USER_PART = re.compile(r"^(\w[\w+.-]*://[^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(r"([?&])password=[^&]*&?", re.IGNORECASE)


def without_password(address: str) -> str:
    """The address as it may be shown; a path stays as it is.

    It can be used like this where the password is in the environment or in a file, as with ``PGPASSWORD``.
    """
    if "://" not in address:
        return address
    return _PARAMETER.sub(r"\1", _USER_PART.sub(r"\1@", address)).rstrip("?&")
