"""The real pipeline on real servers, held to the reference model."""
