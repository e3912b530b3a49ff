"""A model of feature maintenance that is simple enough to be right by reading it."""
