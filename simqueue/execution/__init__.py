"""Where tasks run: in this process, in processes of this machine, or on a cluster."""
