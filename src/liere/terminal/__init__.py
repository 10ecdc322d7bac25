"""What people see on the terminal."""
