"""Graph passes that choose how arrays lie in memory: pads, spans, blocks of matrices, stencils."""
