"""Attention and transformers, their positions, presets and tasks.

Start with `attention`, then `transformer`, whose switches are those of published architectures. `presets`
has their sizes, `state_dicts` reads published weights, `generation` samples text, and `tasks` are four uses
of models that read sequences.
"""
