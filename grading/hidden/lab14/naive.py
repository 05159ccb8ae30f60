"""Lab 14: hidden groups of ranks; the four ways to all-reduce draw alike."""

from grading.hidden import Hidden
from grading.hidden.lab14.four_all_reduces import groups

NAIVE = Hidden("14-naive", groups)
