"""The results of a run: metric definitions, tables, the summary, and files."""
