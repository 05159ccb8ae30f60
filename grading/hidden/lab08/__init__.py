"""Lab 08, parameter-efficient fine-tuning: hidden cases."""
