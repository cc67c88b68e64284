"""Definitions of the zoo's networks, written from their papers; importing them needs torch (extra `zoo`).

Conventions, where a definition says nothing else: dropout, stochastic depth and weight decay are left out, so that a
step is deterministic; recurrent networks are unrolled over time, with their gates as products and sums; attention is
products and softmax, or one fused op where the configuration says so; numbers are float32; a network that is given
targets returns its loss. What the papers leave open (batch, lengths, sizes of tables) is ours and stated in each
graph's configuration.
"""
