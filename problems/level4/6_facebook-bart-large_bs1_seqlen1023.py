"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by BART large."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "facebook/bart-large"
batch_size = 1
sequence_length = 1023
vocab_size = 50265
d_model = 1024
decoder_layers = 12
decoder_attention_heads = 16
init_std = 0.02

# The small model's init_std is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "sequence_length": 255,
        "vocab_size": 1500,
        "d_model": 80,
        "decoder_layers": 2,
        "decoder_attention_heads": 5,
        "init_std": 0.07,
    },
}

# Softmax cancels a constant that is added to every key; without an encoder nothing is attended across.
INERT = ("*.k_proj.bias", "*.encoder_attn.*", "*.encoder_attn_layer_norm.*")


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
        "bart",
        vocab_size=vocab_size,
        max_position_embeddings=1024,
        d_model=d_model,
        decoder_layers=decoder_layers,
        decoder_attention_heads=decoder_attention_heads,
        decoder_ffn_dim=4 * d_model,
        activation_function="gelu",
        scale_embedding=False,
        init_std=init_std,
        pad_token_id=1,
        tie_word_embeddings=True,
    )
    return [model_name, config]
