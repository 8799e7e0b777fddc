"""The decode step of one stream as Triton kernels: one for the embedding, five a layer, the head.

This file needs Triton, so only kernels.py imports it, and only where Triton is. All pointers are to
contiguous rows; the letters are gpt2.py's. Weights have any floating type, everything else float32.
Every kernel reads the token's place from the device, so one CUDA graph serves a whole text.

A product is a matrix read once, so weights are asked for first, before what they are multiplied
with: that is small and lies in the cache. `WIDTH`, `CHUNK` and `SPLITS` are powers of two, as
Triton insists; what they reach beyond the real sizes is masked.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def embed(
    token: tl.tensor,  # (1,) int64
    place: tl.tensor,  # (1,) int64
    tokens: tl.tensor,  # (V, C)
    positions: tl.tensor,  # (T, C)
    x: tl.tensor,  # (T, C): the row at place is written
    C: tl.constexpr,
    WIDTH: tl.constexpr,  # C or more
) -> None:
    """What the first layer reads: the token's row plus its place's row."""
    at = tl.load(place)
    column = tl.arange(0, WIDTH)
    inside = column < C
    what = tl.load(tokens + tl.load(token) * C + column, mask=inside).to(tl.float32)  # (WIDTH,)
    where = tl.load(positions + at * C + column, mask=inside).to(tl.float32)  # (WIDTH,)
    tl.store(x + at * C + column, what + where, mask=inside)


@triton.jit
def write_qkv(
    place: tl.tensor,
    x: tl.tensor,  # (T, C)
    scale: tl.tensor,  # (C,)
    shift: tl.tensor,  # (C,)
    epsilon: float,
    rows: tl.tensor,  # (3 C, C)
    bias: tl.tensor,  # (3 C,)
    qkv: tl.tensor,  # (3, H, T, D): the rows at place are written
    C: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    ROWS: tl.constexpr,  # outputs a program makes
    WIDTH: tl.constexpr,
) -> None:
    """LayerNorm, then Q, K and V of the new token, straight into the state."""
    at = tl.load(place)
    output = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    y = _product_of_norm(x + at * C, scale, shift, epsilon, rows, output, 3 * C, C, WIDTH)
    y += tl.load(bias + output, mask=output < 3 * C).to(tl.float32)  # (ROWS,)
    slot_and_head = output // D  # (3, H) counted through, as outputs come in that order
    tl.store(qkv + (slot_and_head * T + at) * D + output % D, y, mask=output < 3 * C)


@triton.jit
def attend(
    place: tl.tensor,
    qkv: tl.tensor,  # (3, H, T, D)
    mixed: tl.tensor,  # (SPLITS, C): softmax(scores) V of each split by itself
    weight: tl.tensor,  # (SPLITS, H): the logarithm of what the split's exponentials sum to
    H: tl.constexpr,
    D: tl.constexpr,
    T: tl.constexpr,
    KEYS: tl.constexpr,  # keys a split has
    WIDTH: tl.constexpr,  # D or more
) -> None:
    """One head's attention over one split of the keys; `project_attention` joins the splits.

    Splits beyond the place end at once and leave what lies in `mixed` and `weight`.
    """
    head, split = tl.program_id(0), tl.program_id(1)
    at = tl.load(place)
    if split * KEYS <= at:
        key = split * KEYS + tl.arange(0, KEYS)
        column = tl.arange(0, WIDTH)
        seen, inside = key <= at, column < D
        tile = key[:, None] * D + column[None, :]  # (KEYS, WIDTH)
        mask = seen[:, None] & inside[None, :]
        k = tl.load(qkv + (H + head) * T * D + tile, mask=mask, other=0.0)
        v = tl.load(qkv + (2 * H + head) * T * D + tile, mask=mask, other=0.0)
        q = tl.load(qkv + (head * T + at) * D + column, mask=inside, other=0.0)
        scores = tl.where(seen, tl.sum(k * q[None, :], axis=1) * D**-0.5, float("-inf"))  # (KEYS,)
        peak = tl.max(scores, axis=0)
        shares = tl.exp(scores - peak)  # (KEYS,)
        total = tl.sum(shares, axis=0)
        a = tl.sum(v * shares[:, None], axis=0) / total  # (WIDTH,)
        tl.store(mixed + (split * H + head) * D + column, a, mask=inside)
        tl.store(weight + split * H + head, peak + tl.log(total))


@triton.jit
def project_attention(
    place: tl.tensor,
    mixed: tl.tensor,  # (SPLITS, C)
    weight: tl.tensor,  # (SPLITS, H)
    rows: tl.tensor,  # (C, C)
    bias: tl.tensor,  # (C,)
    before: tl.tensor,  # (T, C)
    after: tl.tensor,  # (T, C): the row at place is written
    C: tl.constexpr,
    D: tl.constexpr,
    KEYS: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,  # columns read at once
) -> None:
    """The splits' answers joined by their weights, projected, and added to the residual row.

    Joining here repeats small work in every program, but spares a launch a layer, or counters by
    which the last program of a head would have to find out that it is the last.
    """
    at = tl.load(place)
    output = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    split = tl.arange(0, SPLITS)
    live = (split * KEYS <= at)[:, None]
    y = tl.zeros((ROWS,), tl.float32)
    for start in tl.static_range(0, C, CHUNK):
        column = start + tl.arange(0, CHUNK)
        inside = column < C
        w = _tile(rows, output, column, C, C)  # (ROWS, CHUNK)
        mask = live & inside[None, :]
        tile = split[:, None] * C + column[None, :]  # (SPLITS, CHUNK)
        one = tl.load(mixed + tile, mask=mask, other=0.0)
        # Split 0 is always live; masked columns get 0 there, so that nothing is -inf minus -inf.
        head = split[:, None] * (C // D) + (column // D)[None, :]
        logs = tl.load(weight + head, mask=mask, other=0.0)
        logs = tl.where(live, logs, float("-inf"))
        shares = tl.exp(logs - tl.max(logs, axis=0)[None, :])  # (SPLITS, CHUNK)
        a = tl.sum(shares * one, axis=0) / tl.sum(shares, axis=0)  # (CHUNK,)
        y += tl.sum(w * a[None, :], axis=1)  # (ROWS,)
    _add(before, after, bias, y, output, at, C)


@triton.jit
def expand(
    place: tl.tensor,
    x: tl.tensor,  # (T, C)
    scale: tl.tensor,
    shift: tl.tensor,
    epsilon: float,
    rows: tl.tensor,  # (4 C, C)
    bias: tl.tensor,  # (4 C,)
    hidden: tl.tensor,  # (4 C,): written
    C: tl.constexpr,
    N: tl.constexpr,  # 4 C
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """LayerNorm, the MLP's first product, and GELU by the tanh formula."""
    at = tl.load(place)
    output = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    y = _product_of_norm(x + at * C, scale, shift, epsilon, rows, output, N, C, WIDTH)
    y += tl.load(bias + output, mask=output < N).to(tl.float32)  # (ROWS,)
    # (1 + tanh z) / 2 = sigmoid(2 z), and this z is sqrt(2 / pi) (y + 0.044715 y^3)
    h = y * tl.sigmoid(2 * 0.7978845608028654 * (y + 0.044715 * y * y * y))
    tl.store(hidden + output, h, mask=output < N)


@triton.jit
def contract(
    place: tl.tensor,
    hidden: tl.tensor,  # (4 C,)
    rows: tl.tensor,  # (C, 4 C)
    bias: tl.tensor,  # (C,)
    before: tl.tensor,  # (T, C)
    after: tl.tensor,  # (T, C): the row at place is written
    C: tl.constexpr,
    N: tl.constexpr,  # 4 C
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """The MLP's second product, added to the residual row."""
    output = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    y = tl.zeros((ROWS,), tl.float32)
    for start in tl.static_range(0, N, CHUNK):
        column = start + tl.arange(0, CHUNK)
        w = _tile(rows, output, column, C, N)  # (ROWS, CHUNK)
        h = tl.load(hidden + column, mask=column < N, other=0.0)  # (CHUNK,)
        y += tl.sum(w * h[None, :], axis=1)  # (ROWS,)
    _add(before, after, bias, y, output, tl.load(place), C)


@triton.jit
def write_logits(
    place: tl.tensor,
    x: tl.tensor,  # (T, C)
    scale: tl.tensor,
    shift: tl.tensor,
    epsilon: float,
    rows: tl.tensor,  # (V, C)
    logits: tl.tensor,  # (V,): written
    C: tl.constexpr,
    N: tl.constexpr,  # V
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """The last LayerNorm and the product with every id's row."""
    output = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = x + tl.load(place) * C
    y = _product_of_norm(row, scale, shift, epsilon, rows, output, N, C, WIDTH)
    tl.store(logits + output, y, mask=output < N)


@triton.jit
def _product_of_norm(
    x: tl.tensor,  # (C,)
    scale: tl.tensor,
    shift: tl.tensor,
    epsilon: float,
    rows: tl.tensor,  # (N, C)
    output: tl.tensor,  # (ROWS,): which rows
    N: tl.constexpr,
    C: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """Rows times LayerNorm(x): (ROWS,)."""
    column = tl.arange(0, WIDTH)
    inside = column < C
    w = _tile(rows, output, column, N, C)  # (ROWS, WIDTH)
    number = tl.load(x + column, mask=inside, other=0.0)  # (WIDTH,)
    mean = tl.sum(number, axis=0) / C
    apart = tl.where(inside, number - mean, 0.0)  # (WIDTH,)
    normed = apart * tl.rsqrt(tl.sum(apart * apart, axis=0) / C + epsilon)  # (WIDTH,)
    normed *= tl.load(scale + column, mask=inside, other=0.0)
    normed += tl.load(shift + column, mask=inside, other=0.0)
    return tl.sum(w * normed[None, :], axis=1)  # (ROWS,)


@triton.jit
def _tile(
    rows: tl.tensor, output: tl.tensor, column: tl.tensor, N: tl.constexpr, K: tl.constexpr
) -> tl.tensor:
    """Some rows and columns of a matrix (N, K), widened; 0 outside."""
    mask = (output < N)[:, None] & (column < K)[None, :]
    tile = output[:, None] * K + column[None, :]
    return tl.load(rows + tile, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _add(
    before: tl.tensor,
    after: tl.tensor,
    bias: tl.tensor,
    y: tl.tensor,
    output: tl.tensor,
    at: tl.tensor,
    C: tl.constexpr,
) -> None:
    """Write the residual row plus y plus the bias as the next residual row."""
    inside = output < C
    y += tl.load(bias + output, mask=inside).to(tl.float32)
    y += tl.load(before + at * C + output, mask=inside)
    tl.store(after + at * C + output, y, mask=inside)
