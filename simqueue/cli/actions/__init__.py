"""What commands do. Each function takes the values that its command parsed, see `simqueue.cli.commands`."""
