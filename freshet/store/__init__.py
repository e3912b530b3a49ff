"""The online store's layout in Redis, and what Python needs to read and write it."""
