"""What supervisor and worker say to each other."""
