"""Maps (batch_size, 3, image_size, image_size) images to (batch_size, 1000) logits with Swin-MLP."""
import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 10
image_size = 224

SIZES = {"small": {"batch_size": 1}}


def window_partition(x: torch.Tensor, window_size: int) -> torch.Tensor:
    """Cuts (B, H, W, C) into (windows, window_size * window_size, C)."""
    B, H, W, C = x.shape
    x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
    return x.transpose(2, 3).reshape(-1, window_size * window_size, C)


def window_reverse(windows: torch.Tensor, window_size: int, H: int, W: int) -> torch.Tensor:
    """Puts window_partition's windows together again."""
    C = windows.shape[-1]
    x = windows.view(-1, H // window_size, W // window_size, window_size, window_size, C)
    return x.transpose(2, 3).reshape(-1, H, W, C)


class Mlp(nn.Module):
    def __init__(self, dim: int, hidden_dim: int, drop: float):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.act(self.fc1(x)))
        return self.drop(self.fc2(x))


class SwinMLPBlock(nn.Module):
    """Mixes the pixels of a window, per head, by a linear layer in the place of attention."""

    def __init__(
        self,
        dim: int,
        resolution: int,
        num_heads: int,
        window_size: int,
        shift_size: int,
        mlp_ratio: float,
        drop: float,
        norm_layer: type,
    ):
        super().__init__()
        self.num_heads = num_heads
        self.window_size = min(window_size, resolution)
        self.shift_size = shift_size if resolution > window_size else 0
        self.norm1 = norm_layer(dim)
        width = num_heads * self.window_size**2
        self.spatial_mlp = nn.Conv1d(width, width, kernel_size=1, groups=num_heads)
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self._mix(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def _mix(self, x: torch.Tensor) -> torch.Tensor:
        B, H, W, C = x.shape
        size, heads = self.window_size, self.num_heads
        before = size - self.shift_size if self.shift_size else 0
        x = F.pad(x, (0, 0, before, self.shift_size, before, self.shift_size))
        padded_H, padded_W = x.shape[1:3]

        windows = window_partition(x, size)
        windows = windows.view(-1, size * size, heads, C // heads).transpose(1, 2)
        mixed = self.spatial_mlp(windows.reshape(-1, heads * size * size, C // heads))
        mixed = mixed.view(-1, heads, size * size, C // heads).transpose(1, 2)
        x = window_reverse(mixed.reshape(-1, size * size, C), size, padded_H, padded_W)
        return x[:, before : before + H, before : before + W]


class PatchMerging(nn.Module):
    """Merges 2x2 pixels of dim channels into one of 2 * dim."""

    def __init__(self, dim: int, norm_layer: type):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, dim=-1)))


class BasicLayer(nn.Module):
    """One stage: blocks with windows in place and shifted by turns, then PatchMerging unless it is the last."""

    def __init__(
        self,
        dim: int,
        resolution: int,
        depth: int,
        num_heads: int,
        window_size: int,
        mlp_ratio: float,
        drop: float,
        norm_layer: type,
        is_last: bool,
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinMLPBlock(
                dim,
                resolution,
                num_heads,
                window_size,
                window_size // 2 if i % 2 else 0,
                mlp_ratio,
                drop,
                norm_layer,
            )
            for i in range(depth)
        )
        self.downsample = nn.Identity() if is_last else PatchMerging(dim, norm_layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.downsample(x)


class PatchEmbed(nn.Module):
    """Maps images to (B, H, W, embed_dim) embeddings of their patches."""

    def __init__(self, patch_size: int, in_chans: int, embed_dim: int, norm_layer: type | None):
        super().__init__()
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)
        self.norm = norm_layer(embed_dim) if norm_layer else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.proj(x).permute(0, 2, 3, 1))


class Model(nn.Module):
    """`drop_path_rate` and `use_checkpoint` concern training, and have no effect here."""

    def __init__(
        self,
        img_size: int = 224,
        patch_size: int = 4,
        in_chans: int = 3,
        num_classes: int = 1000,
        embed_dim: int = 96,
        depths: list = [2, 2, 6, 2],
        num_heads: list = [3, 6, 12, 24],
        window_size: int = 7,
        mlp_ratio: float = 4.0,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        norm_layer: type = nn.LayerNorm,
        patch_norm: bool = True,
        use_checkpoint: bool = False,
    ):
        super().__init__()
        self.patch_embed = PatchEmbed(
            patch_size, in_chans, embed_dim, norm_layer if patch_norm else None
        )
        self.pos_drop = nn.Dropout(drop_rate)
        self.layers = nn.ModuleList(
            BasicLayer(
                embed_dim * 2**i,
                img_size // patch_size // 2**i,
                depths[i],
                num_heads[i],
                window_size,
                mlp_ratio,
                drop_rate,
                norm_layer,
                is_last=i == len(depths) - 1,
            )
            for i in range(len(depths))
        )
        num_features = embed_dim * 2 ** (len(depths) - 1)
        self.norm = norm_layer(num_features)
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pos_drop(self.patch_embed(x))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(dim=(1, 2)))


def get_inputs():
    return [torch.rand(batch_size, 3, image_size, image_size)]


def get_init_inputs():
    return []
