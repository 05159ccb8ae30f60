"""A lab of small exercises on kernels, in the two halves and the hidden part that every lab has."""
