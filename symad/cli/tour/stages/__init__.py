"""The stages of ``symad tour``, one file for each topic; `symad.cli.tour.stage` explains how to add one.

`basics` is the start: the chain rule with every step. `data`, `sequences`, `language`, `architectures` and
`generative` run the models; `engine`, `sparse`, `compiled`, `given_data` and `gpu` what computes them;
`verification` certificates.
"""
