"""Passes on programs: functions Program -> Program that do not change the results of the program.

`symad.numeric.pipelines` has their order. A new pass needs a file here, a line there, and a test that the
interpreter computes the same results before and after the pass.
"""
