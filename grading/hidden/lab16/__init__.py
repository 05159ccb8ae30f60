"""Lab 16, ZeRO and FSDP: hidden cases."""
