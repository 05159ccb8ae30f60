"""A JupyterHub for one course: accounts of the machine, JupyterLab for each, nbgrader's exchange between them.

Start it with `jupyterhub -f jupyterhub_config.py`; docs/jupyterhub.md says what has to be there before.
"""

from pathlib import Path

INSTRUCTORS = {"instructor"}
STUDENTS = {"ada", "bob"}
# Switches off JupyterLab's question about news and nbgrader's panels for instructors.
STUDENTS_SETTINGS = str(Path(__file__).resolve().parents[1] / ".make" / "jupyter")

c = get_config()

c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allowed_users = INSTRUCTORS | STUDENTS
c.Authenticator.admin_users = set()
c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
c.Spawner.default_url = "/lab"


def only_what_students_need(spawner):
    if spawner.user.name not in INSTRUCTORS:
        spawner.environment["JUPYTER_CONFIG_PATH"] = STUDENTS_SETTINGS


c.Spawner.pre_spawn_hook = only_what_students_need
