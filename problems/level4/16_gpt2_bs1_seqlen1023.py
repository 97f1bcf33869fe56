"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by GPT-2 small."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "gpt2"
batch_size = 1
sequence_length = 1023
vocab_size = 50257
n_embd = 768
n_layer = 12
n_head = 12
initializer_range = 0.02

# The small model's initializer_range is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "sequence_length": 255,
        "vocab_size": 1500,
        "n_embd": 80,
        "n_layer": 2,
        "n_head": 5,
        "initializer_range": 0.06,
    },
}


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
        "gpt2",
        vocab_size=vocab_size,
        n_positions=1024,
        n_embd=n_embd,
        n_layer=n_layer,
        n_head=n_head,
        n_inner=4 * n_embd,
        activation_function="gelu_new",
        layer_norm_epsilon=1e-5,
        initializer_range=initializer_range,
        bos_token_id=vocab_size - 1,
        eos_token_id=vocab_size - 1,
        tie_word_embeddings=True,
    )
    return [model_name, config]
