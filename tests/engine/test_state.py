"""The state: what lies where, and bytes that are those of the real buffers."""

from engine.events import Dimensions
from engine.state import K, Q, State, V, bytes_for

SMALL = Dimensions(n_layer=12, n_head=12, n_embd=768, n_positions=16, n_vocab=50_257)


def test_the_buffers_have_the_shapes_that_the_design_names() -> None:
    state = State(SMALL)
    assert tuple(state.qkv.shape) == (12, 3, 1, 12, 16, 64)  # (L, 3, B, H, T, D)
    assert tuple(state.residual.shape) == (25, 1, 16, 768)  # (2L + 1, B, T, C)
    assert state.position == 0


def test_the_slots_stand_in_the_order_in_which_c_attn_gives_them() -> None:
    assert (Q, K, V) == (0, 1, 2)  # so that one copy fills all three


def test_a_position_of_gpt2_small_costs_73728_bytes_of_kv() -> None:
    used = State(SMALL).used(1)
    assert used.kv == 73_728  # 2 x 12 x 768 x 4
    assert used.q == 36_864
    assert used.residual == 76_800  # 25 x 768 x 4


def test_nothing_is_used_before_the_first_token_and_all_at_the_end() -> None:
    state = State(SMALL)
    assert (state.used(0).kv, state.used(0).q, state.used(0).residual) == (0, 0, 0)
    assert state.used(16) == state.reserved
    assert state.reserved.kv + state.reserved.q == state.qkv.nbytes
    assert state.reserved.residual == state.residual.nbytes


def test_the_size_is_known_before_anything_is_allocated() -> None:
    state = State(SMALL)
    assert bytes_for(SMALL) == state.qkv.nbytes + state.residual.nbytes == 2_998_272


def test_each_stream_has_buffers_of_its_own() -> None:
    state = State(SMALL, n_streams=3)
    assert tuple(state.qkv.shape) == (12, 3, 3, 12, 16, 64)  # (L, 3, B, H, T, D)
    assert tuple(state.residual.shape) == (25, 3, 16, 768)  # (2L + 1, B, T, C)
    assert bytes_for(SMALL, n_streams=3) == state.qkv.nbytes + state.residual.nbytes == 8_994_816
    assert state.n_positions == 16


def test_a_position_costs_the_same_bytes_in_a_batch() -> None:
    assert State(SMALL, n_streams=3).used(7) == State(SMALL).used(7)
