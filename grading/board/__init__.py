"""The capstone's leaderboard: from graded scripts to a page and a table for each machine.

`entries` finds what may have a place, `places` says which, `page` and `table` write it, `verify` plays the scripts
again. A score is worked out where a submission is graded, and nowhere here.
"""
