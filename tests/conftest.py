"""One thread for every test process: several of them share few cores, and spinning threads make them crawl."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
