"""Shared and local memory of one chunk: a row of bytes for each block, a row of bytes for each thread.

Uninitialized shared memory holds zeros here, whatever it holds on a GPU; `shadow` tells who reads it.
"""

from __future__ import annotations

import numpy as np

from labkit.simt.lanes import Lanes

ALIGN = 16


class Shared:
    """[n_blocks, n_bytes] of shared memory."""

    def __init__(self, lanes: Lanes, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.row_bytes = -(-max(n_bytes, 1) // ALIGN) * ALIGN
        self.data = np.zeros((lanes.n_blocks, self.row_bytes), np.uint8)

    def load(self, offsets: np.ndarray, rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """[n_blocks, t] values. offsets: valid bytes [1 or n_blocks, t]; rows: [n_blocks, 1]."""
        view = self.data.view(dtype)
        index = offsets // dtype.itemsize
        if index.shape[0] == 1:
            return np.take(view, index[0], axis=1)
        return np.take(view.reshape(-1), index + rows * view.shape[1])

    def store(self, offsets: np.ndarray, rows: np.ndarray, threads: np.ndarray, values: np.ndarray) -> None:
        """Write one value a lane. offsets, rows, threads: [n] of the lanes; values: [n]."""
        view = self.data.view(values.dtype)
        view.reshape(-1)[offsets // values.itemsize + rows * view.shape[1]] = values


class Local:
    """[n_lanes, n_bytes] of local memory, enlarged as functions are called."""

    def __init__(self, lanes: Lanes) -> None:
        self.n_lanes = lanes.n_blocks * lanes.n_threads
        self.shape = (lanes.n_blocks, lanes.n_threads)
        self.data = np.zeros((self.n_lanes, 0), np.uint8)

    @property
    def n_bytes(self) -> int:
        """Bytes of one thread."""
        return self.data.shape[1]

    def enlarge(self, n_bytes: int) -> None:
        """Make room for this many bytes a thread."""
        if n_bytes > self.n_bytes:
            larger = np.zeros((self.n_lanes, -(-n_bytes // ALIGN) * ALIGN), np.uint8)
            larger[:, : self.n_bytes] = self.data
            self.data = larger

    def _places(self, offsets: np.ndarray, dtype: np.dtype) -> np.ndarray:
        lane = np.arange(self.n_lanes, dtype=np.int64).reshape(self.shape)
        return offsets // dtype.itemsize + lane * (self.n_bytes // dtype.itemsize)

    def load(self, offsets: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """[n_blocks, n_threads] values at these bytes of each thread."""
        return np.take(self.data.view(dtype).reshape(-1), self._places(offsets, dtype))

    def store(self, offsets: np.ndarray, values: np.ndarray, mask: np.ndarray) -> None:
        """Write the values of the lanes of the mask [n_blocks, n_threads]."""
        places = np.broadcast_to(self._places(offsets, values.dtype), self.shape)
        self.data.view(values.dtype).reshape(-1)[places[mask]] = np.broadcast_to(values, self.shape)[mask]
