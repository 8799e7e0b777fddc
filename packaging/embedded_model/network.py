"""GPT-2 with the rows of a small vocabulary, as it is trained, and what it starts from.

Letters: B rows, T tokens a row, C n_embd, H heads, D = C / H.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embedded_model.settings import Model, Start

FASTEST = 2.8  # radians a token, of the first wave of the position embedding
NEAR = (*range(10), 12, 15, 19, 24, 30, 40)  # the waves a look-back head compares, fastest first


class Attention(nn.Module):
    """Causal attention over H heads."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.n_head = model.n_head
        self.c_attn = nn.Linear(model.n_embd, 3 * model.n_embd)
        self.c_proj = nn.Linear(model.n_embd, model.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)  # (B, T, 3, H, D)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, D)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))  # type: ignore[no-any-return]


class MLP(nn.Module):
    """Two matrices with GELU (tanh form) between them."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.c_fc = nn.Linear(model.n_embd, 4 * model.n_embd)
        self.c_proj = nn.Linear(4 * model.n_embd, model.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))  # type: ignore[no-any-return]


class Block(nn.Module):
    """One layer: what attention and the MLP say is added to the residual stream."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(model.n_embd)
        self.attn = Attention(model)
        self.ln_2 = nn.LayerNorm(model.n_embd)
        self.mlp = MLP(model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class Network(nn.Module):
    """GPT-2 whose token ids are places in the small vocabulary.

    `wte` has n_rows + 1 rows: the last stands for every token without a row of its own. Parameters
    have GPT-2's names; matrices lie (out, in), which is GPT-2's layout turned over.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.wte = nn.Embedding(model.n_rows + 1, model.n_embd)
        self.wpe = nn.Embedding(model.n_positions, model.n_embd)
        self.h = nn.ModuleList(Block(model) for _ in range(model.n_layer))
        self.ln_f = nn.LayerNorm(model.n_embd)

    def forward(self, rows: Tensor) -> Tensor:
        """The final states, from which wte makes logits.

        Args:
            rows: (B, T), int64, below n_rows + 1.

        Returns:
            (B, T, C); bfloat16 under autocast, else float32.
        """
        return self.read(self.wte(rows))

    def read(self, embedded: Tensor) -> Tensor:
        """The same from token embeddings, whose rows need not be in wte: (B, T, C) to (B, T, C)."""
        x = embedded + self.wpe.weight[: embedded.shape[1]]  # (B, T, C)
        if torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)  # type: ignore[no-any-return]


def begin(model: Model, start: Start, *, seed: int) -> Network:
    """A network before its first step: GPT-2's random start, and the look-back heads.

    Weights are normal with a deviation of 0.02, those that write to the residual stream divided by
    sqrt(2 n_layer) (Radford et al. 2019, section 2.3); biases are 0.
    """
    torch.manual_seed(seed)
    network = Network(model)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 2:
                narrow = math.sqrt(2 * model.n_layer) if "c_proj" in name else 1
                nn.init.normal_(parameter, std=0.02 / narrow)
            elif "bias" in name:
                nn.init.zeros_(parameter)
        nn.init.normal_(network.wpe.weight, std=0.01)
        if start.position_scale:
            _set_positions(network, start)
    return network


def _set_positions(network: Network, start: Start) -> None:
    """Waves in half of the dimensions, randomly turned, and heads that compare them.

    Position p has sin(w p) and cos(w p) for C / 4 frequencies w. Turning a position's pair by one
    step gives the pair of the position before it: a query made that way matches the key there.
    """
    n_positions, width = network.wpe.weight.shape
    first: Block = network.h[0]  # type: ignore[assignment]
    n_waves, D = width // 4, width // first.attn.n_head
    span = FASTEST * n_positions / 6.28  # the last wave turns about once in all positions
    course = math.log(span) * torch.arange(n_waves) / (n_waves - 1)
    waves = torch.exp(math.log(FASTEST) - course)  # (n_waves,)
    angles = torch.arange(n_positions)[:, None] * waves[None]  # (positions, n_waves)
    pairs = torch.stack([angles.sin(), angles.cos()], -1).reshape(n_positions, 2 * n_waves)
    turn = torch.linalg.qr(torch.randn(width, width))[0][: 2 * n_waves]  # (2 n_waves, C)
    network.wpe.weight.copy_(start.position_scale * (pairs @ turn))  # (positions, C)

    weight, strength = first.attn.c_attn.weight, start.look_back_strength
    compared = [wave for wave in NEAR if wave < n_waves][: D // 2]
    for head in range(start.look_back_heads):
        for place, wave in enumerate(compared):
            sine, cosine = turn[2 * wave], turn[2 * wave + 1]  # each (C,)
            c, s = math.cos(waves[wave]), math.sin(waves[wave])
            query = head * D + 2 * place
            key = width + query
            weight[query] = strength * (c * sine - s * cosine)  # sin(w (p - 1))
            weight[query + 1] = strength * (s * sine + c * cosine)  # cos(w (p - 1))
            weight[key], weight[key + 1] = strength * sine, strength * cosine
