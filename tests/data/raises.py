import torch


class Model(torch.nn.Module):
    def forward(self, x):
        raise ValueError("deliberate")


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
