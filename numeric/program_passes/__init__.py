"""Passes on programs, each a function Program -> Program that keeps what the program computes.

`symad.numeric.pipelines` says in which order they run. A new pass is a new file here, a line there, and a
test that the interpreter gives the same before and after.
"""
