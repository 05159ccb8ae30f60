"""What the notebooks show, beside the exercises: one module a lab. No exercise needs it, and nothing is judged here."""
