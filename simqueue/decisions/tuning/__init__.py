"""The cheapest system that keeps its limits: candidates, what the law says of them, and the race of the others."""
