"""Lab 20, the capstone: what is true."""
