"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by ELECTRA small."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "google/electra-small-discriminator"
batch_size = 1
sequence_length = 511
vocab_size = 30522
embedding_size = 128
hidden_size = 256
num_hidden_layers = 12
num_attention_heads = 4
initializer_range = 0.02

# The small model's initializer_range is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "sequence_length": 255,
        "vocab_size": 1500,
        "embedding_size": 48,
        "hidden_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "initializer_range": 0.04,
    },
}

# Softmax cancels a constant that is added to every key.
INERT = ("*.key.bias",)


class Model(nn.Module):
    def __init__(self, model_name: str, config: PreTrainedConfig):
        super().__init__()
        self.model_name = model_name
        self.model = AutoModelForCausalLM.from_config(config).eval()
        for parameter in self.model.parameters():
            if parameter.dim() == 1:  # a bias or a norm's scale: 0 or 1 in a new model, in no trained one
                parameter.data.add_(torch.randn_like(parameter), alpha=config.initializer_range)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, use_cache=False).logits


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    config = AutoConfig.for_model(
        "electra",
        vocab_size=vocab_size,
        max_position_embeddings=512,
        type_vocab_size=2,
        embedding_size=embedding_size,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        intermediate_size=4 * hidden_size,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        is_decoder=False,
        initializer_range=initializer_range,
        pad_token_id=0,
        tie_word_embeddings=True,
    )
    return [model_name, config]
