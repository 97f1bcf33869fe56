# Sum over the middle dimension: a block adds up a strip of columns, tile by tile, in float32.
import cuda.tile as ct
import torch
import torch.nn as nn

ROWS, COLUMNS = 32, 128  # of a tile


@ct.kernel
def sum_kernel(x, out, tile_rows: ct.Constant[int], tile_columns: ct.Constant[int]):
    batch, strip = ct.bid(0), ct.bid(1)
    total = ct.full((1, tile_rows, tile_columns), 0, dtype=ct.float32)
    # Indices count in tiles; what lies past the end is read as zero, and not written.
    for step in range(ct.num_tiles(x, axis=1, shape=(1, tile_rows, tile_columns))):
        tile = ct.load(x, index=(batch, step, strip), shape=(1, tile_rows, tile_columns),
                       padding_mode=ct.PaddingMode.ZERO)
        total = total + ct.astype(tile, ct.float32)
    ct.store(out, index=(batch, 0, strip), tile=ct.astype(ct.sum(total, axis=1, keepdims=True), out.dtype))


class ModelNew(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() != 3 or self.dim != 1:
            return torch.sum(x, dim=self.dim, keepdim=True)
        x = x.contiguous()
        out = torch.empty((x.shape[0], 1, x.shape[2]), dtype=x.dtype, device=x.device)
        grid = (x.shape[0], ct.cdiv(x.shape[2], COLUMNS))
        ct.launch(torch.cuda.current_stream(), grid, sum_kernel, (x, out, ROWS, COLUMNS))
        return out
