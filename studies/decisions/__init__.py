"""How right the decisions are: capacities on problems with a known answer, and the cheapest of enumerated spaces."""
