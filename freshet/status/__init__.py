"""A running deployment as it stands: taken as one value, shown on terminals and on a web page."""
