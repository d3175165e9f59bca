"""Layers, activations, losses and small networks.

Start with `feedforward`. `parameters` says how the arrays of a model are named, made and traced, and
`options` checks sizes and names. `losses`, `pointwise_losses` and `margin_losses` are shared by all models.
"""
