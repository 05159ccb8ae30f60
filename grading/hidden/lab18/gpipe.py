"""Lab 18: hidden cases of GPipe's order."""

from grading.hidden import Hidden
from grading.hidden.lab18.pipes import pipes

GPIPE = Hidden("18-gpipe", pipes)
