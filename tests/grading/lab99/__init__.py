"""A lab of small exercises for tests of the grader, in the two halves and the hidden part that every lab has."""
