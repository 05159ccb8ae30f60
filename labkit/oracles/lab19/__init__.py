"""Lab 19, long context and experts: what is true."""
