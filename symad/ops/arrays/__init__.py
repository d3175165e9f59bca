"""Ops that move, reduce and contract arrays."""
