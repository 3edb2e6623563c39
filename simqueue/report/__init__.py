"""What people look at: figures and the comparison on a terminal."""
