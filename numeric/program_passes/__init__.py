"""Passes on programs: functions Program -> Program that do not change the results of the program.

`symad.numeric.pipelines` is the start: it has their order. `lines` decides which computations share a
printed line, `loops` makes loops, `memory` decides where values are stored. A new pass needs a file here, a
line in `pipelines`, and a test that the interpreter computes the same results before and after the pass.
"""
