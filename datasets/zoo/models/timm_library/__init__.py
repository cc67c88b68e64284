"""Definitions of networks of the library `timm`: rows of tables; importing them does not need the library.

A network is a published model of that name, built on torch's meta device, so no weights are made or loaded. Dropout and
stochastic depth are left out, numbers are float32, and attention is products and softmax. A graph's configuration names
the model; image sizes are the published ones, batches are ours.
"""
