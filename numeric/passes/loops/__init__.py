"""Graph passes over recurrences: what leaves the loop, what enters it, how its state is laid out.

`loop` is the op that the passes make of scans. `hoist` takes work out, `sink_into_loop` in;
`keep_step_values` keeps what derivatives read, `split_state` and `feature_major` lay out the state,
`last_step` and `cancel_pads` drop what is not read. `numeric.pipelines` says in which order.
"""
