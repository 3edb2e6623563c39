"""``python -m simqueue``: the command line."""

from simqueue.cli import main

main()
