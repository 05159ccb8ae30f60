"""Lab 18, pipelines: hidden cases."""
