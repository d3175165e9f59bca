"""Networks with losses and small data."""

from __future__ import annotations

CASES = {}
