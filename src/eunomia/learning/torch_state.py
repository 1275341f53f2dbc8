"""What a PyTorch network and its optimiser need to go on after an interruption, as arrays of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from eunomia.learning.perceptron import Perceptron
from eunomia.model.arrays import Array, Floats
from eunomia.model.products import dot


def torch_state(net: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Array]:
    """Return the weights and the optimiser's moments."""
    found = {f"net.{name}": value.numpy() for name, value in net.state_dict().items()}
    for k, moments in optimizer.state_dict()["state"].items():
        found |= {f"adam.{k}.{name}": np.asarray(value, dtype=np.float32) for name, value in moments.items()}
    return found


def restore_torch(net: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Array]) -> None:
    """Go on from such a state."""
    net.load_state_dict({name[4:]: torch.tensor(value) for name, value in state.items() if name.startswith("net.")})
    moments: dict[int, dict[str, Any]] = {}
    for name, value in state.items():
        if name.startswith("adam."):
            _, k, part = name.split(".", 2)
            moments.setdefault(int(k), {})[part] = torch.tensor(value)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})


def layers_of(perceptron: Perceptron) -> nn.Sequential:
    """Return layers with these weights, in float32, for training."""
    found: list[nn.Module] = []
    for weight, bias in zip(perceptron.weights, perceptron.biases, strict=True):
        linear = nn.Linear(*weight.shape)
        linear.weight.data = torch.tensor(weight.T, dtype=torch.float32)
        linear.bias.data = torch.tensor(bias, dtype=torch.float32)
        found += [linear, nn.ReLU()]
    return nn.Sequential(*found[:-1])


def perceptron_of(layers: nn.Module, product: Callable[[Floats, Floats], Floats] = dot) -> Perceptron:
    """Return the linear layers in float64, for inference."""
    linear = [one for one in layers.modules() if isinstance(one, nn.Linear)]
    weights = tuple(one.weight.detach().numpy().T.astype(np.float64) for one in linear)
    return Perceptron(weights, tuple(one.bias.detach().numpy().astype(np.float64) for one in linear), product)
