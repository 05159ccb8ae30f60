"""What supervisor and worker say to one another: a dataclass for every frame, one module for every conversation.

A job (`job`, `steps`); time runs downwards, and what the student's code can reach is the worker's side alone:

    supervisor                              worker (a fork of the forking process)
        | -- StartJob(steps, fork) ----------> |
        | <------------------------- Begins -- |  nothing of the student's has run; its memory is read from outside
        | -- Go -----------------------------> |
        | <-------------------- At(cell_id) -- |  for each step ...
        | <--------------------- CellEnded --- |    ... that is a cell or a plain test;
        | <--- Ready, or ThreadsAreRunning --- |    ... that is an exercise: from a fork of its own, or not forked
        |      (here the job may be sealed)    |
        | -- RunCase(case, tree, lend) ------> |    for each case ...
        | <---------------------- Observed --- |
        | -- Probe(meter, n) ----------------> |    then for each probe ...
        | <------------------------ Probed --- |
        | -- Done ---------------------------> |
        | <------------- ExerciseOver(how) --- |    the fork has ended; in place of Observed: it died
        | <----------------------- JobOver --- |

A rank of an exercise that has several (`ranks`) has such a job for itself; between RunCase and Observed it talks to the
router: any number of Send, Receive and Compute, which nothing answers, and of WaitSent, WaitReceived, Barrier, Mark,
Enter, WaitCollective and Now, each answered by Answer, by Refused or, once the case is lost for all, by Over.

A job of an exercise with a store (`store`) calls it between RunCase and Observed: any number of Write, Rename, Read and
ListFiles, each answered by Stored or NotThere, until at one of them the job may be killed. Then another job is started,
and has the same case.

Kernels that run again (`rerun`): RerunKernels -> Started, then Loaded or Failed; for each case RerunCase -> Repeated or
Failed.

The forking process (`control`) takes datagrams: Start -> JobStarted, SealJob -> JobSealed, Kill -> JobEnded, of which
the last also comes unasked; it begins with ServerReady or ServerFailed.

Whatever a worker sends may be a lie. A frame of another kind than the one that is due, without all its parts or with
parts that make no sense is a WireError of `Channel.expect`, and costs the step that it belongs to. What the parts are
worth is judged elsewhere.
"""
