"""Bounds of rounding errors of printed code, that are proved: `error_bound`."""

from symad.numeric.stability.error_bounds import Contribution as Contribution
from symad.numeric.stability.error_bounds import ErrorBound as ErrorBound
from symad.numeric.stability.error_bounds import error_bound as error_bound
