"""The commands of a set-up: one line on the screen for each, their output in the log, how far it got on the disk.

The syntax is as old as setup.py's.
"""

import os
import subprocess
import time

from setup_checks import Trouble
from setup_environment import LOG, STATE, write


class Steps:
    """Runs commands one line each: output to the log, the state on disk, the end of the log on failure."""

    def __init__(self, venv, say=print, ours=True):
        self.venv, self.say, self.ours, self.log = venv, say, ours, os.path.join(venv, LOG)

    def note(self, state):
        """Remember how far it got; never in somebody else's environment, which must not look like ours."""
        if self.ours:
            write(os.path.join(self.venv, STATE), "{}\n{}\n".format(state, os.path.realpath(self.venv)))

    def run(self, label, command, may_fail=False):
        self.say("  {} ...".format(label), end="", flush=True)
        start = time.time()
        self.note("doing")
        with open(self.log, "ab") as log:
            begin = log.tell()
            log.write("\n$ {}\n".format(" ".join(command)).encode())
            log.flush()
            # A user's pip settings may ask for --user, which an environment refuses.
            env = dict(os.environ, PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
            rc = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        if rc < 0:  # killed: what it left behind cannot be trusted
            self.say(" killed")
            raise Trouble("{} was killed by signal {}.".format(label, -rc), "run the same command again")
        self.note("done")
        seconds = " {:.0f} s".format(time.time() - start)
        self.say(seconds if rc == 0 else " not found" if may_fail else " failed")
        if rc and not may_fail:
            with open(self.log, "rb") as log:
                log.seek(begin)
                tail = log.read().decode("utf-8", "replace").strip().splitlines()[-15:]
            self.say("\n".join("    " + line for line in tail))
            raise Trouble(
                "{} failed; the lines above end {}.".format(label, self.log),
                "see the last line; without a network, point pip at a mirror with "
                'PIP_ARGS="--index-url URL" and run the same command again',
            )
        return rc == 0
