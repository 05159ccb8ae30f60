"""The instructor's side: build notebooks, grade submissions, report. Students do not have this package."""
