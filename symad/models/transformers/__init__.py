"""Attention and transformers, their positions, presets and tasks."""
