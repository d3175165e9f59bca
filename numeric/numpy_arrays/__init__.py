"""NumPy code for array graphs.

Start at `lower`. `printer` turns the nodes into a program (`planning`) and prints its statements; passes on
the program have decided which buffer each statement writes to, and `in_place_printer` prints such programs.
`ops` and `pairs` have the rules of the ops; they know a printer by the protocols of `printing`. `scalars`
has graphs of scalars. `module` joins the file, `memory_reuse` keeps memory between calls.
"""
