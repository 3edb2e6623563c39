"""How right the decisions are: capacities under limits on latency, on problems with a known answer."""
