"""Ends with 0 if a URL answers: what containers' health checks run, as the image has no curl.

::

    python docker/healthy.py http://localhost:8081/overview
"""

from __future__ import annotations

import sys
import urllib.request

_TIMEOUT_S = 4.0


def main() -> None:
    """Asks once; says why it does not answer."""
    url = sys.argv[1]
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S):
            pass
    except (OSError, ValueError) as error:
        sys.exit(f"{url} does not answer: {error}")


if __name__ == "__main__":
    main()
