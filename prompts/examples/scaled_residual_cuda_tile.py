# One pass instead of three: 12 bytes an element, which is all that memory has to move.
import cuda.tile as ct
import torch
import torch.nn as nn

ROWS, COLUMNS = 4, 512  # of a tile


@ct.kernel
def scaled_residual_kernel(x, y, scale, out, tile_rows: ct.Constant[int], tile_columns: ct.Constant[int]):
    row, column = ct.bid(0), ct.bid(1)
    # Indices count in tiles; what lies past the end is read as zero, and not written.
    x_tile = ct.load(x, index=(row, column), shape=(tile_rows, tile_columns), padding_mode=ct.PaddingMode.ZERO)
    y_tile = ct.load(y, index=(row, column), shape=(tile_rows, tile_columns), padding_mode=ct.PaddingMode.ZERO)
    scale_tile = ct.load(scale, index=(column,), shape=(tile_columns,), padding_mode=ct.PaddingMode.ZERO)
    value = x_tile * ct.reshape(scale_tile, (1, tile_columns)) + y_tile
    ct.store(out, index=(row, column), tile=ct.where(value < 0, 0.0, value))


class ModelNew(nn.Module):
    def __init__(self, columns: int):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        grid = (ct.cdiv(x.shape[0], ROWS), ct.cdiv(x.shape[1], COLUMNS))
        ct.launch(torch.cuda.current_stream(), grid, scaled_residual_kernel,
                  (x, y, self.scale.detach(), out, ROWS, COLUMNS))
        return out
