"""Lab 16, ZeRO and FSDP: what is true."""
