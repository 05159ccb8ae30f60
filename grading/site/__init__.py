"""The course's pages: every lab as a student sees it, with the figures of a solved run, and what instructors read.

    executed      solved notebooks as they have run, kept in build/executed by what they were made from
    answers       what gives an answer away, and must not stand on a page
    lab_page      a lab's page: the student's notebook with the outputs of the solved one
    api_page      the page of labkit's public names, from their docstrings
    course_pages  the front page, the table of exercises, and what instructors read
    prerequisites the drawing of which lab needs which
    make          all of them -> a folder of static HTML, by Sphinx
    conf          Sphinx's settings
    mathml        formulas as MathML, for Sphinx

The pages load nothing from a network, and hold no answer. Nothing here writes a notebook of `notebooks/`.
"""
