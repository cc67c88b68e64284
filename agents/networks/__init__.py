"""What learners with a neural network have in common, whoever trains it; importing needs no torch."""
