"""Pictures of plans: a map of trees over regions, and algorithms by cost and time."""
