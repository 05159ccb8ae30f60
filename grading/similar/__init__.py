"""Answers that are alike: laid out for a detector of others, or compared here, pair by pair, for a person to look at.

`programs` takes the answers out of the submissions, `layout` writes them for JPlag and Dolos, `detector` compares two,
`honest` says how alike answers are that nobody copied, `pairs` brings it together and `page` shows it. Nothing here
touches a grade.
"""
