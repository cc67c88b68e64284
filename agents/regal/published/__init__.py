"""REGAL as far as it is published: features, network, Beta heads and REINFORCE."""
