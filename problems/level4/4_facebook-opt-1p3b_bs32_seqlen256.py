"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by OPT 1.3B."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "facebook/opt-1.3b"
batch_size = 32
sequence_length = 256
vocab_size = 50272
hidden_size = 2048
num_hidden_layers = 24
num_attention_heads = 32
init_std = 0.02

# The small model's init_std is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "batch_size": 4,
        "sequence_length": 64,
        "vocab_size": 1500,
        "hidden_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "init_std": 0.1,
    },
    "24gb": {"batch_size": 16, "num_hidden_layers": 8},
}

# Softmax cancels a constant that is added to every key.
INERT = ("*.k_proj.bias",)


class Model(nn.Module):
    def __init__(self, model_name: str, config: PreTrainedConfig):
        super().__init__()
        self.model_name = model_name
        self.model = AutoModelForCausalLM.from_config(config).eval()
        for parameter in self.model.parameters():
            if parameter.dim() == 1:  # a bias or a norm's scale: 0 or 1 in a new model, in no trained one
                parameter.data.add_(torch.randn_like(parameter), alpha=config.init_std)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, use_cache=False).logits


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = AutoConfig.for_model(
        "opt",
        vocab_size=vocab_size,
        max_position_embeddings=2048,
        hidden_size=hidden_size,
        word_embed_proj_dim=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        ffn_dim=4 * hidden_size,
        activation_function="relu",
        do_layer_norm_before=True,
        enable_bias=True,
        layer_norm_elementwise_affine=True,
        init_std=init_std,
        pad_token_id=1,
        tie_word_embeddings=True,
    )
    return [model_name, config]
