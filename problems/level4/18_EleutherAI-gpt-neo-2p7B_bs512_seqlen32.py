"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by GPT-Neo 2.7B."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "EleutherAI/gpt-neo-2.7B"
batch_size = 512
sequence_length = 32
vocab_size = 50257
hidden_size = 2560
num_layers = 32
num_heads = 20
window_size = 256
# The checkpoint's configuration has 0.02. Scores are not scaled here, and random attention that sharp is chaotic:
# over 32 layers it amplifies rounding beyond the tolerance.
initializer_range = 0.01

# The small model's initializer_range is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "batch_size": 16,
        "sequence_length": 16,
        "vocab_size": 1500,
        "hidden_size": 80,
        "num_layers": 2,
        "num_heads": 5,
        "initializer_range": 0.1,
    },
    "24gb": {"batch_size": 128, "num_layers": 4},
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
        "gpt_neo",
        vocab_size=vocab_size,
        max_position_embeddings=2048,
        hidden_size=hidden_size,
        num_layers=num_layers,
        attention_types=[[["global", "local"], num_layers // 2]],
        num_heads=num_heads,
        intermediate_size=4 * hidden_size,
        window_size=window_size,
        activation_function="gelu_new",
        layer_norm_epsilon=1e-5,
        initializer_range=initializer_range,
        bos_token_id=vocab_size - 1,
        eos_token_id=vocab_size - 1,
        tie_word_embeddings=True,
    )
    return [model_name, config]
