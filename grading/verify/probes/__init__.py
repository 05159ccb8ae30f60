"""What an attack may have damaged, measured before and after; one module for each kind of damage."""
