"""Evaluates scheduling policies on a user's own data, by replaying it through the real job."""
