"""Layers, activations, losses and small networks."""
