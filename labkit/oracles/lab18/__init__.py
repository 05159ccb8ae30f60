"""Lab 18, pipelines: what is true."""
