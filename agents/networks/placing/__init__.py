"""What learned placers have in common: what they read of ops, how a placement is made, judged and learned from."""
