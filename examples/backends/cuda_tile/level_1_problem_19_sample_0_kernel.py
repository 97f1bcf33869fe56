# ReLU: one pass, as many bytes as the operation has to move.
import cuda.tile as ct
import torch
import torch.nn as nn

TILE = 4096


@ct.kernel
def relu_kernel(x, out, tile: ct.Constant[int]):
    at = ct.bid(0)
    value = ct.load(x, index=(at,), shape=(tile,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, index=(at,), tile=ct.where(value < 0, 0, value))  # NaN stays NaN


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), TILE),), relu_kernel,
                  (x.view(-1), out.view(-1), TILE))
        return out
