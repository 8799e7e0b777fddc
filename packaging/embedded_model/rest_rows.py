"""Rows for the tokens that training never saw, made so that they are almost never foretold.

Letters: N states, C n_embd, R trained rows, V ids in GPT-2's vocabulary.

A token's row is u + 0.2 p: p is the mean of the rows of the pieces its bytes are made of, and u is
one vector for all. After a state h, all these rows together weigh

    sum over them of exp(h . (u + 0.2 p))  =  exp(h . u)  x  sum over them of exp(0.2 h . p),

so a first u is found knowing only one number of every state, which is made once. But these rows
are also read: a state made from one of them is unlike all that training made, and turns back to u.
So u is then moved, through the network, until what follows such a token is foretold best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from embedded_model.batches import copying
from embedded_model.network import Network
from embedded_model.streams import Stream, Streams
from engine import tokenizer
from engine.tokenizer import N_VOCAB

PIECES = 0.2  # how much of its pieces a row keeps
LONGEST = 24  # bytes of a piece
WINDOW = 256  # tokens read at once
N_TRAINING, N_HELD_OUT = 48, 24  # windows of a text
AT_ONCE = 16  # windows
CHUNK = 256  # states whose logits are held at once
N_ITERATIONS, BATCH, RATE, DECAY = 600, 2_048, 0.05, 1e-5  # of the search for the first u
N_SETTLING, ROWS, CONTEXT = 240, 8, 96  # of moving it: passes, rows of a pass and their tokens
READ = 0.1  # of the tokens of such a row: replaced by ones without a trained row
SAMPLED = 1_500  # of all such rows, for what they weigh in a pass
WORTH = 100.0  # nats a unit of probability on these rows is worth


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the probability the rows that training never saw get together."""

    mean: float
    largest: float  # after any one state


@dataclass(frozen=True, slots=True)
class Filled:
    """A table for the whole vocabulary."""

    table: Tensor  # (V, C), float32
    training: Share  # after states of the training texts, on which u was found
    held_out: Share | None  # after states of texts that were not trained on, if there are any


def fill(network: Network, streams: Streams) -> Filled:
    """Rows for all tokens: the trained ones as they are, and one for each of the others.

    Args:
        network: trained; its last row, which stood for all others, is where u begins.
        streams: what it read. Windows and batches are drawn with fixed seeds.
    """
    known = network.wte.weight.detach()  # (R + 1, C)
    trained, last = known[:-1], known[-1]
    rows = pieces(trained, streams.vocabulary).mul_(PIECES)  # (V - R, C)
    h = _states(network, streams.training, n_windows=N_TRAINING, seed=0)  # (N, C)
    offsets = _offsets(h, trained, rows)  # (N,)
    u = _search(h, offsets, last)  # (C,)
    u = _settle(network, streams.training, rows, u, recorded=(h, offsets))  # (C,)
    held_out = None
    if streams.held_out:
        g = _states(network, streams.held_out, n_windows=N_HELD_OUT, seed=1)
        held_out = _share(g @ u + _offsets(g, trained, rows))
    table = torch.empty(N_VOCAB, len(u))
    table[torch.from_numpy(streams.vocabulary)] = trained
    table[torch.from_numpy(untrained(streams.vocabulary))] = rows + u
    return Filled(table, _share(h @ u + offsets), held_out)


def untrained(vocabulary: NDArray[np.int64]) -> NDArray[np.int64]:
    """(V - R,) the ids that are not in a small vocabulary, rising."""
    return np.setdiff1d(np.arange(N_VOCAB), vocabulary)


def pieces(trained: Tensor, vocabulary: NDArray[np.int64]) -> Tensor:
    """The mean row of what each untrained token is made of, none longer than a usual trained row.

    A token's bytes are cut from the left into the longest trained tokens; bytes that begin none
    are passed over.

    Args:
        trained: (R, C), float32.
        vocabulary: (R,), the ids of these rows.

    Returns:
        (V - R, C), in the order of `untrained`; 0 for a token without pieces.
    """
    token = tokenizer.load().token
    place = {token(id).piece: n for n, id in enumerate(vocabulary.tolist())}
    longest = min(LONGEST, max(map(len, place)))
    cuts = [_cut(token(id).piece, place, longest) for id in untrained(vocabulary).tolist()]
    starts = np.cumsum([0, *map(len, cuts[:-1])])
    flat = torch.tensor([n for cut in cuts for n in cut], dtype=torch.int64)
    means: Tensor = F.embedding_bag(flat, trained, torch.from_numpy(starts), mode="mean")
    usual = torch.linalg.vector_norm(trained, dim=1).median()  # ()
    norms = torch.linalg.vector_norm(means, dim=1, keepdim=True)  # (V - R, 1)
    scaled: Tensor = means * (usual / norms).clamp(max=1)  # (V - R, C)
    return scaled


def _cut(piece: bytes, place: Mapping[bytes, int], longest: int) -> list[int]:
    """The places of a piece's longest known parts, from the left."""
    found, at = [], 0
    while at < len(piece):
        for end in range(min(at + longest, len(piece)), at, -1):
            if (n := place.get(piece[at:end])) is not None:
                found.append(n)
                break
        at = end  # one byte on where none was found
    return found


@torch.no_grad()
def _states(
    network: Network, streams: Mapping[str, Stream], *, n_windows: int, seed: int
) -> Tensor:
    """(N, C) final states over random windows, as many of every text, after trained tokens.

    As many again over rows of random tokens that repeat, for text is not all that is read. What
    follows other tokens depends on the rows that are to be made.
    """
    random, n_rows = np.random.default_rng(seed), len(network.wte.weight) - 1
    longest = min(WINDOW, len(network.wpe.weight))
    windows = []
    for _, stream in sorted(streams.items()):
        length = min(longest, len(stream.rows))
        starts = random.integers(len(stream.rows) - length + 1, size=(n_windows, 1))
        windows.append(stream.rows[starts + np.arange(length)].astype(np.int64))
    copies = [copying(longest, n_rows, random)[0] for _ in range(n_windows)]
    states = []
    for x in (*windows, np.stack(copies)):  # (n_windows, length) each
        for some in torch.split(torch.from_numpy(x), AT_ONCE):
            states.append(network(some)[some < n_rows])  # (N', C)
    return torch.cat(states)


def _offsets(states: Tensor, trained: Tensor, rows: Tensor) -> Tensor:
    """(N,) log of what the rows weigh without u, against what the trained rows weigh."""
    found = [
        torch.logsumexp(h @ rows.t(), 1) - torch.logsumexp(h @ trained.t(), 1)  # (chunk,)
        for h in torch.split(states, CHUNK)
    ]
    return torch.cat(found)


def _search(states: Tensor, offsets: Tensor, start: Tensor) -> Tensor:
    """(C,) u: the mean of -log(probability of the trained rows) made small, and u kept short."""
    u = start.clone().requires_grad_()
    adam = torch.optim.Adam([u], lr=RATE)
    generator = torch.Generator().manual_seed(0)
    for _ in range(N_ITERATIONS):
        some = torch.randint(len(states), (BATCH,), generator=generator)
        z = states[some] @ u + offsets[some]  # (BATCH,)
        loss = F.softplus(z).mean() + DECAY * u.square().sum()
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
    return u.detach()


def _settle(
    network: Network,
    streams: Mapping[str, Stream],
    rows: Tensor,
    start: Tensor,
    *,
    recorded: tuple[Tensor, Tensor],
) -> Tensor:
    """(C,) u moved so that texts with such tokens in them are foretold best.

    The mean of -log p(next token) over rows of text in which some tokens are replaced, plus WORTH
    times the mean probability of the untrained rows, there and over recorded states (and offsets,
    as `_search` has them); the learning rate falls to 0 along a line.
    """
    states, offsets = recorded
    trained = network.wte.weight.detach()[:-1]  # (R, C)
    random, u = np.random.default_rng(2), start.clone().requires_grad_()
    adam = torch.optim.Adam([u], lr=RATE)
    for n in range(N_SETTLING):
        adam.param_groups[0]["lr"] = RATE * (1 - n / N_SETTLING)
        x, y = map(torch.from_numpy, _texts(network, streams, random))  # (ROWS, T) each
        read = torch.from_numpy(random.integers(len(rows), size=x.shape))  # (ROWS, T)
        known = F.embedding(x.clamp(max=len(trained) - 1), trained)  # (ROWS, T, C)
        embedded = torch.where((x == len(trained))[..., None], u + rows[read], known)
        h = network.read(embedded).flatten(0, 1)  # (N, C)
        some = rows[torch.from_numpy(random.choice(len(rows), min(SAMPLED, len(rows)), False))]
        weight = torch.logsumexp(h @ trained.t(), 1)  # (N,)
        others = torch.logsumexp(h @ (u + some).t(), 1) + math.log(len(rows) / len(some))  # (N,)
        right = (h * trained[y.flatten().clamp(max=len(trained) - 1)]).sum(1)  # (N,)
        lost = torch.logaddexp(weight, others) - right  # (N,)
        share = torch.sigmoid(others - weight)  # (N,)
        again = torch.from_numpy(random.integers(len(states), size=BATCH))  # (BATCH,)
        shares = torch.sigmoid(states[again] @ u + offsets[again])  # (BATCH,)
        loss = lost[y.flatten() < len(trained)].mean() + WORTH * (share.mean() + shares.mean())
        (u.grad,) = torch.autograd.grad(loss, [u])
        adam.step()
    return u.detach()


def _texts(
    network: Network, streams: Mapping[str, Stream], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of text, some tokens made untrained ones, and what comes next: (ROWS, T) each."""
    names, longest = sorted(streams), min(CONTEXT, len(network.wpe.weight))
    cuts = []
    for n in range(ROWS):
        stream = streams[names[n % len(names)]].rows
        length = min(longest + 1, len(stream))
        at = int(random.integers(len(stream) - length + 1))
        cuts.append(stream[at : at + length].astype(np.int64))
    shortest = min(map(len, cuts))
    text = np.stack([cut[:shortest] for cut in cuts])  # (ROWS, T + 1)
    x = np.where(random.random(text.shape) < READ, len(network.wte.weight) - 1, text)[
        :, :-1
    ]  # (ROWS, T)
    return x, text[:, 1:]


def _share(z: Tensor) -> Share:
    """From the log odds (N,) of the untrained rows against the trained ones."""
    p = torch.sigmoid(z)  # (N,)
    return Share(float(p.mean()), float(p.max()))
