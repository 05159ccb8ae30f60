"""What a launch log has of the tree that a run returns: the tensors that have a place in memory, shape and strides."""

from __future__ import annotations

import pytest
import torch

from grading.worker.launch_log import tensors_of


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_sparse_and_nested_tensors_are_left_out() -> None:
    x = torch.ones(3)
    tree = {"kept": [x], "sparse": x.to_sparse(), "nested": torch.nested.nested_tensor([x])}
    assert list(tensors_of(tree)) == [("kept.0", x)]
