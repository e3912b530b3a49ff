"""What reports are made of: figures and pages."""
