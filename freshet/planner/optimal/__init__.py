"""The optimal planner: a linear program over trees, whose columns are found as they are needed."""
