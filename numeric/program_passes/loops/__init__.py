"""Program passes that make loops statements, and decide where the values of their steps are stored.

`open_loops` is the start: loops over the steps of a recurrence. `loop_layout` decides which of their values
share an array. `open_bodies` handles loops over blocks of rows, and the functions that ops call.
"""
