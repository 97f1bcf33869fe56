"""NetVLAD, from (batch_size, num_features, feature_size) to (batch_size, num_clusters * feature_size)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 2048
num_features = 100
num_clusters = 32
feature_size = 512
ghost_clusters = 0

SIZES = {
    "small": {"batch_size": 16, "num_features": 20, "num_clusters": 8, "feature_size": 64}
}


class Model(nn.Module):
    def __init__(self, cluster_size: int, feature_size: int, ghost_clusters: int):
        super().__init__()
        self.cluster_size = cluster_size
        self.feature_size = feature_size
        all_clusters = cluster_size + ghost_clusters
        scale = 1 / math.sqrt(feature_size)
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, all_clusters))
        self.batch_norm = nn.BatchNorm1d(all_clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """`mask` is ignored: all features count."""
        B, N, D = x.shape
        assignment = self.batch_norm(x.reshape(B * N, D) @ self.clusters)
        assignment = F.softmax(assignment, dim=1)[:, : self.cluster_size]
        assignment = assignment.reshape(B, N, self.cluster_size)

        centres = assignment.sum(dim=1, keepdim=True) * self.clusters2
        vlad = x.transpose(1, 2) @ assignment - centres
        vlad = F.normalize(vlad, dim=1)
        return F.normalize(vlad.reshape(B, D * self.cluster_size), dim=1)


def get_inputs():
    return [torch.rand(batch_size, num_features, feature_size)]


def get_init_inputs():
    return [num_clusters, feature_size, ghost_clusters]
