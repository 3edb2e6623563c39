"""Errors of step times and whole runs against measurements: the data, the fits, the report."""
