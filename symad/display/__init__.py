"""Graphs displayed to users: tables of every step, and pictures.

Start with `explain` for tables (`writer` makes them, `tables` formats them), with `drawing` for pictures
(`scene`, `svg`, `tikz`, `raster`), with `typesetting` for formulas (`reading` turns them into text), with
`pages` for notebooks. `recurrences`, `loops` and `modes` run forward and reverse mode and the four Hessians;
`unfolding` shows loops step by step; `films` and `player` step through a graph. `grades` tells students what
is wrong.
"""
