"""What is run by hand when a release is made."""
