"""The simulator of Pollux' artifact: its Tiresias and its Optimus with an oracle, on 16 machines of 4 T4."""

from __future__ import annotations

from eunomia_reproduction.peers.pollux.comparison import is_here, reproduce

__all__ = ["is_here", "reproduce"]
