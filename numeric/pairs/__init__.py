"""Attention and sums over pairs on the CPU, by tiles: scores, masks, intervals, and their printers."""
