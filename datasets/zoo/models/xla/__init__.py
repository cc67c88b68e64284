"""Programs in plain JAX, compiled by XLA for a CPU: graphs of what XLA runs, in the order in which it runs it.

Networks are functions that are written from their papers (see :mod:`.net`); :mod:`.program` compiles them. Importing
the definitions does not need JAX, building them does (extra `zoo`). Images are channels-last, numbers are float32,
loops are unrolled: a ``while`` would be one op. Names begin with ``xla-``, families are those of the same
architecture elsewhere in the zoo.
"""
