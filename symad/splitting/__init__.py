"""Splitting data: which functions are sums, means or concatenations of their values on parts."""

from symad.splitting.certificate import Splitting, splits

__all__ = ["Splitting", "splits"]
