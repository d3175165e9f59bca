"""What alone says `proved`. Read: terms, writing_out, quotients, rules, networks, defined, proofs."""
