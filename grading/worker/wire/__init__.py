"""How trees of tensors cross between supervisor and worker: frames over a socket, tensors as bytes or shared memory.

What each frame means is not known here; see `grading.worker.protocol`.
"""
