"""NumPy code for array graphs.

Start at `lower`. `printer` turns the nodes into a program and prints its statements; passes on the program
have decided which buffer each statement writes to. `memory_reuse` keeps memory between calls, and `ops` has
the rules of the ops.
"""
