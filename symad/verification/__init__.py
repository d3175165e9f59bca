"""Verification: what is proved, tested, refuted or undecided about a derivative."""
