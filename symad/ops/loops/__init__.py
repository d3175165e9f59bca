"""Ops with a body: recurrences, checkpointed chains, recomputation."""
