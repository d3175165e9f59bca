"""Models of sequences: AR, RNN, LSTM, state space, convolutions in time, language models by counts."""
