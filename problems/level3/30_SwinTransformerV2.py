"""Maps (batch_size, 3, image_size, image_size) images to (batch_size, 1000) logits with Swin Transformer V2."""
import math

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


class WindowAttention(nn.Module):
    """Cosine attention within windows; an MLP on log-spaced coordinates gives the bias of relative positions."""

    def __init__(
        self,
        dim: int,
        window_size: int,
        num_heads: int,
        qkv_bias: bool,
        attn_drop: float,
        proj_drop: float,
        pretrained_window_size: int,
    ):
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.full((num_heads, 1, 1), math.log(10)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, num_heads, bias=False)
        )
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.v_bias = nn.Parameter(torch.zeros(dim)) if qkv_bias else None
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

        offsets = torch.arange(1 - window_size, window_size)
        table = torch.stack(torch.meshgrid(offsets, offsets, indexing="ij"), dim=-1)
        table = 8 * table / ((pretrained_window_size or window_size) - 1)
        table = torch.sign(table) * torch.log2(table.abs() + 1) / math.log2(8)
        self.register_buffer("relative_coords_table", table, persistent=False)

        pixels = torch.arange(window_size)
        pixels = torch.cartesian_prod(pixels, pixels)
        relative = pixels[:, None] - pixels[None, :] + window_size - 1
        index = relative[..., 0] * (2 * window_size - 1) + relative[..., 1]
        self.register_buffer("relative_position_index", index, persistent=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """`mask` is (windows of one image, N, N) and added to the scores of `x`, (windows, N, C)."""
        windows, N, C = x.shape
        bias = None
        if self.q_bias is not None:
            bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        qkv = F.linear(x, self.qkv.weight, bias)
        q, k, v = qkv.view(windows, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)

        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.logit_scale, max=math.log(100)).exp()
        position_bias = self.cpb_mlp(self.relative_coords_table).flatten(0, 1)
        position_bias = position_bias[self.relative_position_index].permute(2, 0, 1)
        scores = scores + 16 * torch.sigmoid(position_bias)
        if mask is not None:
            scores = scores.view(-1, len(mask), self.num_heads, N, N) + mask[:, None]
            scores = scores.view(windows, self.num_heads, N, N)

        weights = self.attn_drop(F.softmax(scores, dim=-1))
        x = (weights @ v).transpose(1, 2).reshape(windows, N, C)
        return self.proj_drop(self.proj(x))


class SwinTransformerBlock(nn.Module):
    def __init__(
        self,
        dim: int,
        resolution: int,
        num_heads: int,
        window_size: int,
        shift_size: int,
        mlp_ratio: float,
        qkv_bias: bool,
        drop: float,
        attn_drop: float,
        norm_layer: type,
        pretrained_window_size: int,
    ):
        super().__init__()
        self.window_size = min(window_size, resolution)
        self.shift_size = shift_size if resolution > window_size else 0
        self.norm1 = norm_layer(dim)
        self.attn = WindowAttention(
            dim,
            self.window_size,
            num_heads,
            qkv_bias,
            attn_drop,
            drop,
            pretrained_window_size,
        )
        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(dim, int(dim * mlp_ratio), drop)
        self.register_buffer("attn_mask", self._mask(resolution) if self.shift_size else None)

    def _mask(self, resolution: int) -> torch.Tensor:
        """Keeps pixels apart that only the cyclic shift has brought into one window."""
        band = torch.zeros(resolution)
        band[-self.window_size :] = 1
        band[-self.shift_size :] = 2
        region = 3 * band[:, None] + band[None, :]
        region = window_partition(region[None, :, :, None], self.window_size).squeeze(-1)
        apart = region[:, :, None] != region[:, None, :]
        return torch.zeros(apart.shape).masked_fill(apart, -100.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.norm1(self._attend(x))
        return x + self.norm2(self.mlp(x))

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        H, W = x.shape[1:3]
        x = torch.roll(x, shifts=(-self.shift_size, -self.shift_size), dims=(1, 2))
        windows = self.attn(window_partition(x, self.window_size), self.attn_mask)
        x = window_reverse(windows, self.window_size, H, W)
        return torch.roll(x, shifts=(self.shift_size, self.shift_size), dims=(1, 2))


class PatchMerging(nn.Module):
    """Merges 2x2 pixels of dim channels into one of 2 * dim."""

    def __init__(self, dim: int, norm_layer: type):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(2 * dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.norm(self.reduction(torch.cat(corners, dim=-1)))


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
        qkv_bias: bool,
        drop: float,
        attn_drop: float,
        norm_layer: type,
        is_last: bool,
        pretrained_window_size: int,
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinTransformerBlock(
                dim,
                resolution,
                num_heads,
                window_size,
                window_size // 2 if i % 2 else 0,
                mlp_ratio,
                qkv_bias,
                drop,
                attn_drop,
                norm_layer,
                pretrained_window_size,
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
        qkv_bias: bool = True,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        norm_layer: type = nn.LayerNorm,
        patch_norm: bool = True,
        use_checkpoint: bool = False,
        pretrained_window_sizes: list = [0, 0, 0, 0],
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
                qkv_bias,
                drop_rate,
                attn_drop_rate,
                norm_layer,
                is_last=i == len(depths) - 1,
                pretrained_window_size=pretrained_window_sizes[i],
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
