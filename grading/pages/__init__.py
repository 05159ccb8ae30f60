"""What the pages that people open have in common: a template engine that makes every text harmless, the colours, points
and the names of questions.

A page needs no other file and no network, and its own policy forbids the browser to load or run anything but what the
page was made with. What a page says is its room's business.
"""

from grading.pages.engine import POLICY, harmless, policy_with, template_of
from grading.pages.points import in_points
from grading.pages.questions import Whereabouts

__all__ = ["POLICY", "Whereabouts", "harmless", "in_points", "policy_with", "template_of"]
