"""Lab 18: hidden cases of 1F1B."""

from grading.hidden import Hidden
from grading.hidden.lab18.pipes import pipes

ONE_F_ONE_B = Hidden("18-one-f-one-b", pipes)
