"""Graph passes over recurrences: work that leaves a loop, work that enters it, and the layout of its state.

`hoist` moves work out of loops (`symad.numeric.passes.bodies`) and stores the values that derivatives read,
`sink_into_loop` moves work in. `split_state` and `feature_major` change the layout of the state, `zeros`
drops zeros. `numeric.pipelines` defines the order.
"""
