"""Ops whose definition is a larger formula: attention, softmax, sums over pairs.

`softmax` is the smallest example. `attention_ops`, `attention` and `attention_definition` are the classes,
the rules and the mathematics of attention, `pair_sum` those of sums over pairs, `random` counter-based
random numbers.
"""
