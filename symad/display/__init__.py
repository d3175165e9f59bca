"""Graphs displayed to users: tables of every step, and pictures.

Start with `explain` for tables (`writer` makes them, `tables` formats them), with `drawing` for pictures
(`picture` has the boxes, `layout` their places, `scene` the shapes), with `typesetting` for formulas
(`reading` turns them into text), with `pages` for notebooks. `recurrences` and `modes` run forward and
reverse mode and the four Hessians; `player` steps through a graph. `grades` tells students what is wrong.
"""
