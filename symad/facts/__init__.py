"""What is known of scalar functions, one row each: values, parity, sign, range, limits, domain, poles, jumps.

`functions` says what a row holds, and answers `fact`; `rows` has the rows. Importing the package states them.
"""

from symad.facts import rows as _rows  # noqa: F401
