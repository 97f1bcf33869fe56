# Something that the lean headers do not have and that no word of the source gives away.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ops = load_inline(name="beyond_ext", cpp_sources="""
int64_t threads() { torch::init_num_threads(); return 7; }
""", functions=["threads"], extra_cflags=["-O0"])
assert ops.threads() == 7


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
