"""Attention and sums over pairs: ops whose definition is a larger formula with a score of the user's.

`score_functions` is the language of scores, `attention_ops`, `attention` and `attention_definition` are the
classes, the rules and the mathematics of attention, `pair_sum` those of sums over pairs.
"""
