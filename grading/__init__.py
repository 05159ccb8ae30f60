"""The instructor's side: build notebooks, grade submissions, report. Students do not have this package.

Its rooms, in the order of a submission's journey. After "<" stand the rooms that a room imports: only ones above it,
and no others (tests/test_architecture.py reads this drawing).

    deferred        modules of others that are loaded when they are called, not when they are imported
    errors          the one error that a person can do something about
    terminal        the way to a terminal: lines, tables, what a student wrote made harmless
    files           read a file that a student laid out, safely; write one whole or not at all
                    < errors
    own_labs        labs of folders outside this repository, found beside its own
                    < errors
    aside           work on a student's file in a child process with limits
                    < files
    remains         temporary folders that are removed when the program has ended, however it ends
                    < errors
    worker          the untrusted side: runs the student's code in a box, and returns plain trees
    build           the course's sources -> the notebooks, solved and released
                    < errors own_labs terminal
    scaffold        the files of a lab or an exercise that is being begun
                    < errors
    site            the sources, a solved run and the docs -> the course's pages as static HTML
                    < build errors files own_labs
    rebuild         the text of a submitted notebook -> the course's own notebook with the answers in it
                    < build files worker
    course_file     what a course changes of the labs: its `course.toml`
                    < build errors
    course          a course's folder: where everything lies, the secret key, the lock
                    < course_file errors own_labs rebuild
    pseudonym       what a student is called on pages that all students read
                    < course
    log             the hash-chained log: what was received, who was graded with what, when and why
                    < course errors
    nbgrader_api    nbgrader's own Python API on a course
                    < course errors terminal
    intake          what arrives -> submitted/STUDENT/LAB/, and the archive that keeps every notebook
                    < aside course errors files log nbgrader_api rebuild
    hidden          hidden cases, drawn from the course's secret
    isolation       tiers of isolation, which of them works on this machine, a sandbox opened in one
                    < errors own_labs remains worker
    supervisor      the trusted side: runs a job in a sandbox, judges what comes back -> a result
                    < errors hidden isolation own_labs rebuild worker
    submissions     a file under submitted/ -> a prepared submission, with its job
                    < aside course files intake rebuild supervisor worker
    results         stored results, and who got no grade
                    < course files isolation supervisor
    pages           what pages have in common: a template engine that makes texts harmless, the colours
                    < terminal
    feedback        a graded notebook -> the page that its student gets back
                    < course pages pseudonym results supervisor
    executors       where jobs run: processes of this machine, or a cluster
                    < errors isolation remains supervisor worker
    gradebook       results -> nbgrader's gradebook, graded notebooks, feedback; the basis of each grade
                    < build course course_file errors feedback files intake isolation nbgrader_api own_labs rebuild
                    < results submissions supervisor terminal
    pipeline        a class's submissions -> grades: prepare, run, store and write, with little in flight
                    < course errors executors files gradebook intake isolation log results submissions supervisor
                    < terminal
    audit           the log against the gradebook and the files; how a grade came about
                    < course gradebook intake log
    report          the gradebook and the results -> a record of the class: page, CSV, exports
                    < course errors files gradebook intake isolation nbgrader_api pages rebuild results submissions
                    < supervisor terminal
    board           the capstone's leaderboard: places, a page and a table for each machine, scores worked out again
                    < course errors files intake isolation log pages pipeline report results submissions supervisor
                    < worker
    explain         a second look at one student's work, case by case
                    < course errors files hidden intake isolation log submissions supervisor terminal worker
    demo            a sample class that checks its own grades
                    < course errors intake nbgrader_api own_labs report terminal
    tryout          an answer that an author trusts -> verdicts, on public cases and on many hidden draws
                    < demo hidden
    similar         answers that are alike, for a person to look at, or laid out for a detector of others
                    < course demo errors files pages rebuild submissions terminal
    verify          the attack matrix
                    < course demo errors gradebook hidden isolation nbgrader_api report results supervisor terminal
    commands        the command line
                    < all above
    __main__        `python -m grading`
                    < errors terminal
"""

import os

from grading.deferred import defer

defer()
if os.environ.get("LABS_OWN"):
    from grading.own_labs import use_those_of_the_environment

    use_those_of_the_environment()
