"""Readers of data files: CSV tables with line numbers, JSON, YAML, and libraries of facts with sources.

Import the modules: `text` and `csvtable` need the standard library only, `yamlfile` and `library` need ruamel.yaml.
"""
