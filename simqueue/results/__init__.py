"""What came out of a run: metric definitions, tables, the summary, and how they are stored."""
