"""Mamba-2's state space duality, in chunks of block_len, on (batch_size, seq_length, n_heads, d_head)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ALTERED = (
    "A is drawn negative and small, as steps of a decay; with the public problem's normal values, outputs grow to"
    " 1e20 and a thousandth of them is nearly all of their norm"
)

batch_size = 2048
seq_length = 128
n_heads = 8
d_head = 64
d_state = 16
block_len = 64

SIZES = {"small": {"batch_size": 4, "seq_length": 32, "n_heads": 2, "d_head": 16, "block_len": 8}}


def segment_sums(x: torch.Tensor) -> torch.Tensor:
    """Maps (..., T) to (..., T, T): entry (i, j) is the sum of x[j + 1] to x[i], and -inf where j > i."""
    sums = torch.cumsum(x, dim=-1)
    sums = sums[..., :, None] - sums[..., None, :]
    causal = torch.ones(sums.shape[-2:], dtype=torch.bool, device=x.device).tril()
    return sums.masked_fill(~causal, float("-inf"))


class Model(nn.Module):
    def __init__(
        self,
        batch_size: int,
        seq_length: int,
        n_heads: int,
        d_head: int,
        d_state: int,
        block_len: int = 64,
    ):
        super().__init__()
        self.block_len = block_len
        self.A = nn.Parameter(-0.05 * torch.rand(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def forward(self, X: torch.Tensor, initial_states: torch.Tensor | None = None) -> torch.Tensor:
        # Dimensions: batch, chunk, l and s for positions in a chunk, head, p of d_head, n of d_state.
        X, A, B, C = (
            t.view(t.shape[0], -1, self.block_len, *t.shape[2:]) for t in (X, self.A, self.B, self.C)
        )
        A = A.permute(0, 3, 1, 2)
        A_cumsum = torch.cumsum(A, dim=-1)

        # What each position gets from its own chunk.
        L = torch.exp(segment_sums(A))
        Y_diag = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, L, X)

        # What each chunk adds to the state at its end.
        decay_states = torch.exp(A_cumsum[..., -1:] - A_cumsum)
        states = torch.einsum("bcshn,bhcs,bcshp->bchpn", B, decay_states, X)

        # The state at the start of each chunk.
        if initial_states is None:
            initial_states = torch.zeros_like(states[:, :1])
        states = torch.cat([initial_states, states], dim=1)
        decay_chunk = torch.exp(segment_sums(F.pad(A_cumsum[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay_chunk, states)[:, :-1]

        # What each position gets from the chunks before its own.
        Y_off = torch.einsum("bclhn,bchpn,bhcl->bclhp", C, states, torch.exp(A_cumsum))
        return (Y_diag + Y_off).flatten(1, 2)


def get_inputs():
    return [torch.rand(batch_size, seq_length, n_heads, d_head)]


def get_init_inputs():
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]
