# The course in a container: on the CPU, as an ordinary user. docs/jupyterhub.md says what that keeps and what it does not.
#
#   docker build --target student -t labs .
#   docker run --rm -p 127.0.0.1:8888:8888 -v labs-work:/home/course/labs/work labs
#
#   docker build --target instructor -t labs-grading .
#   docker run --rm -it -v labs-courses:/home/course/courses labs-grading
#   (in it: python -m grading course ../courses/mine)
#
# The two volumes outlive their containers, and belong to the ordinary user, as the folders here do.

FROM python:3.11-slim-bookworm AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 --shell /bin/bash course \
    && install -d -o course -g course /home/course/labs /home/course/labs/work /home/course/courses
USER course
WORKDIR /home/course/labs
ENV PATH=/home/course/labs/.venv/bin:$PATH

# What the students' archive holds, and nothing else: no solutions, no hidden cases, no grader.
FROM base AS student
COPY --chown=course:course docs/students.md README.md
COPY --chown=course:course LICENSE Makefile pyproject.toml environment.yml AGENTS.md ./
COPY --chown=course:course .make .make
COPY --chown=course:course labkit labkit
COPY --chown=course:course notebooks notebooks
RUN make setup LOCK=cpu
EXPOSE 8888
CMD ["make", "lab", "LAB_ARGS=--no-browser --ip=0.0.0.0"]

FROM base AS tools
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git \
    && rm -rf /var/lib/apt/lists/*
USER course

FROM tools AS instructor
COPY --chown=course:course . .
RUN make setup LOCK=cpu
CMD ["bash"]

# What `make test-all` needs besides. An editor mounts the repository itself and makes the environment in it.
FROM tools AS dev
USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends chromium fonts-dejavu-core nodejs npm postgresql \
    && rm -rf /var/lib/apt/lists/*
USER course
