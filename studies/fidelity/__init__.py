"""How far step times and whole runs are from measurements: the data, the fits, the report."""
