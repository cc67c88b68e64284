"""Definitions of networks of the library `transformers`: rows of tables; importing them does not need the library.

A network is built from its configuration alone, on torch's meta device, so no weights are made or loaded. What a row
does not set is the library's default, which is the published base size as a rule; depths are often smaller, so that a
graph is no list of repeated layers, and each graph's configuration has what was set. Dropout, layer drop and masks of
training (SpecAugment) are left out, caches of keys are off, numbers are float32. Experts are batched products over
the chosen ones. Letters of speech are aligned with frames, and queries of detectors with objects, beforehand.
"""
