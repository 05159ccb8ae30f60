"""Lab 08, parameter-efficient fine-tuning: what is true of a right answer."""
