"""Real training jobs for `tools/gpu_check`: three models on made-up data, with checkpoints, on the device of the job.

    python tools/gpu_check_job.py train MODEL BATCH STEPS OUT.jsonl     a job that saves every 20 steps and resumes
    python tools/gpu_check_job.py measure SECONDS OUT.json MODEL:BATCH… steps/s of each, one after the other
    python tools/gpu_check_job.py hold GIB                              memory taken until the process is ended

The models are those of the catalogue of job types: ResNet-18 on 32 × 32 pictures, ResNet-50 on 224 × 224, and LM, two
LSTM layers of 200 on 35 tokens of 33,278 words; Small is for trying this without a device. A batch depends on its
number alone, so a resumed job sees the same ones.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA starts: one order of its sums
import torch
from torch import nn

from eunomia.lease import Lease

WORDS, TOKENS, WIDTH = 33_278, 35, 200
SAVE_EVERY = 20
WARM_UP = 3
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Block(nn.Module):
    """A residual block of two 3 × 3 convolutions, or of 1 × 1, 3 × 3, 1 × 1 with four times the channels out."""

    def __init__(self, into: int, width: int, stride: int, is_deep: bool) -> None:
        super().__init__()
        out = 4 * width if is_deep else width
        sizes = (
            [(into, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
            if is_deep
            else [(into, width, 3, stride), (width, out, 3, 1)]
        )
        layers: list[nn.Module] = []
        for a, b, size, step in sizes:
            layers += [nn.Conv2d(a, b, size, step, size // 2, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        same = into == out and stride == 1
        self.short = (
            nn.Identity() if same else nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet(depths: tuple[int, ...], is_deep: bool, is_small: bool) -> nn.Module:
    """Return a residual network for 10 classes of small pictures, or 1,000 of large ones."""
    first = nn.Conv2d(3, 64, 3, 1, 1, bias=False) if is_small else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    layers: list[nn.Module] = [first, nn.BatchNorm2d(64), nn.ReLU()]
    layers += [] if is_small else [nn.MaxPool2d(3, 2, 1)]
    into = 64
    for k, depth in enumerate(depths):
        for n in range(depth):
            layers.append(Block(into, 64 * 2**k, 2 if k and not n else 1, is_deep))
            into = 64 * 2**k * (4 if is_deep else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 10 if is_small else 1000))


class LanguageModel(nn.Module):
    """Two LSTM layers between an embedding and a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.lstm = nn.Embedding(WORDS, WIDTH), nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.words(x))[0]).flatten(0, 1)


def pictures(side: int, classes: int) -> Callable[[torch.Generator, int], tuple[torch.Tensor, torch.Tensor]]:
    return lambda g, n: (
        torch.randn(n, 3, side, side, generator=g, device=DEVICE),
        torch.randint(classes, (n,), generator=g, device=DEVICE),
    )


def sentences(g: torch.Generator, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    text = torch.randint(WORDS, (n, TOKENS + 1), generator=g, device=DEVICE)
    return text[:, :-1], text[:, 1:].flatten()


MODELS: dict[
    str, tuple[Callable[[], nn.Module], Callable[[torch.Generator, int], tuple[torch.Tensor, torch.Tensor]]]
] = {
    "ResNet-18": (lambda: resnet((2, 2, 2, 2), False, True), pictures(32, 10)),
    "ResNet-50": (lambda: resnet((3, 4, 6, 3), True, False), pictures(224, 1000)),
    "LM": (LanguageModel, sentences),
    "Small": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 64), nn.ReLU(), nn.Linear(64, 10)), pictures(32, 10)),
}


class Training:
    """A model, its optimiser, and what one step does."""

    def __init__(self, name: str, batch: int) -> None:
        build, self._draw = MODELS[name]
        torch.manual_seed(1)
        self.model = build().to(DEVICE)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self._batch, self._generator = batch, torch.Generator(DEVICE)

    def step(self, number: int) -> torch.Tensor:
        self._generator.manual_seed(number)
        x, y = self._draw(self._generator, self._batch)
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def train(name: str, batch: int, steps: int, out: str) -> None:
    """Train as a job: a checkpoint every 20 steps, losses as lines of a file."""
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    facts = {
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "device": str(DEVICE),
        "epoch": int(os.environ.get("EUNOMIA_EPOCH", "0")),
    }
    if DEVICE.type == "cuda":
        facts["uuid"] = str(torch.cuda.get_device_properties(0).uuid)
    with Lease() as lease, open(out, "a") as log:
        print(json.dumps(facts), file=log, flush=True)
        training, path = Training(name, batch), lease.checkpoint_dir / "model.pt"
        saved = lease.load({"step": 0})
        if saved["step"]:
            training.restore(torch.load(lease.checkpoint_dir / saved["file"], map_location=DEVICE, weights_only=True))

        def save(step: int) -> None:
            file = path.with_name(f"model-{step}.pt")
            torch.save(training.state(), file)
            lease.save({"step": step, "file": file.name}, step=step)

        done = saved["step"]
        for number in lease.steps(steps, start=done):
            loss = training.step(number).item()
            done = number + 1
            print(json.dumps({"step": number, "loss": loss, "at": time.time()}), file=log, flush=True)
            if done % SAVE_EVERY == 0:
                save(done)
        save(done)


def measure(seconds: float, out: str, names: list[str]) -> None:
    """Measure steps/s of each model and batch size."""
    found = []
    for name in names:
        model, _, batch = name.partition(":")
        try:
            training = Training(model, int(batch))
            for number in range(WARM_UP):
                training.step(number).item()
            begun, done = time.perf_counter(), 0
            while time.perf_counter() - begun < seconds:
                training.step(done).item()
                done += 1
            found.append({"model": model, "batch": int(batch), "steps_per_s": done / (time.perf_counter() - begun)})
        except torch.cuda.OutOfMemoryError:
            found.append({"model": model, "batch": int(batch), "steps_per_s": 0.0})
        del training
        print(found[-1], flush=True)
    with open(out, "w") as file:
        json.dump(found, file)


def hold(gib: float) -> None:
    """Take memory of the device until the process is ended."""
    taken = torch.zeros(int(gib * 2**28), device=DEVICE)
    print("ready", float(taken[0]), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    torch.set_num_threads(1)
    kind, *rest = sys.argv[1:]
    if kind == "train":
        train(rest[0], int(rest[1]), int(rest[2]), rest[3])
    elif kind == "measure":
        measure(float(rest[0]), rest[1], rest[2:])
    else:
        hold(float(rest[0]))
