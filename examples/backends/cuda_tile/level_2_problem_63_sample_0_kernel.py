# Linear, ReLU and the division in one kernel: sums are float32, and what follows the product stays in registers.
import cuda.tile as ct
import torch
import torch.nn as nn

M_TILE, N_TILE, K_TILE = 128, 128, 64


@ct.kernel
def linear_relu_divide_kernel(x, weight, bias, out, divisor: float, m_tile: ct.Constant[int],
                              n_tile: ct.Constant[int], k_tile: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((m_tile, n_tile), 0, dtype=ct.float32)
    # Indices count in tiles; what lies past the end is read as zero, and not written.
    for step in range(ct.num_tiles(x, axis=1, shape=(m_tile, k_tile))):
        left = ct.load(x, index=(row, step), shape=(m_tile, k_tile), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(weight, index=(column, step), shape=(n_tile, k_tile), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, ct.transpose(right), total)
    shift = ct.load(bias, index=(column,), shape=(n_tile,), padding_mode=ct.PaddingMode.ZERO)
    total = total + ct.reshape(ct.astype(shift, ct.float32), (1, n_tile))
    total = ct.where(total < 0, 0, total) / divisor
    ct.store(out, index=(row, column), tile=ct.astype(total, out.dtype))


class ModelNew(nn.Module):
    def __init__(self, in_features: int, out_features: int, divisor: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.divisor = divisor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        weight, bias = self.linear.weight.detach(), self.linear.bias.detach()
        out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype, device=x.device)
        grid = (ct.cdiv(x.shape[0], M_TILE), ct.cdiv(weight.shape[0], N_TILE))
        ct.launch(torch.cuda.current_stream(), grid, linear_relu_divide_kernel,
                  (x, weight, bias, out, self.divisor, M_TILE, N_TILE, K_TILE))
        return out
