"""Shell lines and shell magics that look for what is worth having."""

ROW = 18
DAMAGE = ("files",)
BEFORE = """
!cat @HOME@/.ssh/id_ed25519 @COURSE@/source/*/*.ipynb | grep -o 'canary-[0-9a-f]*'
!env | grep SECRET
!head -c 100 /etc/shadow
!echo @TOKEN@ >> @HOME@/.bashrc
out = !cat @COURSE@/.grading/course.key | od -An -tx1 | tr -d ' \\n'
print(out)
"""
