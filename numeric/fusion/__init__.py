"""Passes that join many nodes to one kernel, for compiled C and for CUDA."""
