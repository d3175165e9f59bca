"""Models of sequences: AR, RNN, LSTM, state space, convolutions in time, language models by counts.

Start with `rnn`, then `lstm`: a step, a scan over it, a loss. `sequence_losses` is shared by them, and
`deer` evaluates recurrences for all steps at once.
"""
