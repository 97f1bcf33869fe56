# torch::nn::functional in the launcher: all of PyTorch's headers, at once.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ops = load_inline(name="functional_ext", cpp_sources="""
namespace F = torch::nn::functional;
torch::Tensor twice(torch::Tensor x) { return F::relu(x) + F::relu(x); }
""", functions=["twice"], extra_cflags=["-O0"])
assert ops.twice(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 4.0]


class ModelNew(nn.Module):
    def forward(self, x):
        return ops.twice(x) / 2
