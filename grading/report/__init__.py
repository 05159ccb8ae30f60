"""What a class did, gathered once and shown as a table or as a page.

The points are nbgrader's; the stored results only explain them. Nothing is graded or changed here.
"""
