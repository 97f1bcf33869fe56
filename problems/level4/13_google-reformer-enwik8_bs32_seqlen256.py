"""Maps token ids (batch_size, sequence_length) to logits (batch_size, sequence_length, vocab_size) by Reformer."""
import torch
import torch.nn as nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

ALTERED = "the weights are random, made from an explicit configuration; the public problem downloads a checkpoint"

model_name = "google/reformer-enwik8"
batch_size = 32
sequence_length = 256
vocab_size = 258
hidden_size = 1024
num_attention_heads = 8
attention_head_size = 128
feed_forward_size = 4096
attn_layers = ["local", "local", "lsh", "local"] * 3
# No sequence here is longer than an LSH layer's chunk, so that attention is exact and nothing is hashed.
local_attn_chunk_length = 128
lsh_attn_chunk_length = 256
initializer_range = 0.02

# The small model's initializer_range is larger, so that its attention is about as far from uniform as the wide model's.
SIZES = {
    "small": {
        "batch_size": 4,
        "sequence_length": 64,
        "hidden_size": 80,
        "num_attention_heads": 5,
        "attention_head_size": 16,
        "feed_forward_size": 320,
        "attn_layers": ["local", "lsh", "local"],
        "local_attn_chunk_length": 32,
        "lsh_attn_chunk_length": 64,
        "initializer_range": 0.07,
    },
}

# The head that is used has no bias; transformers makes one all the same.
INERT = ("model.lm_head.bias",)


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
        "reformer",
        vocab_size=vocab_size,
        max_position_embeddings=65536,
        axial_pos_embds=True,
        axial_pos_shape=[128, 512],
        axial_pos_embds_dim=[hidden_size // 4, 3 * hidden_size // 4],
        # 1.0 in the checkpoint's configuration: new tokens' embeddings would hardly count beside such positions.
        axial_norm_std=initializer_range,
        hidden_size=hidden_size,
        num_attention_heads=num_attention_heads,
        attention_head_size=attention_head_size,
        feed_forward_size=feed_forward_size,
        hidden_act="relu",
        layer_norm_eps=1e-12,
        attn_layers=attn_layers,
        local_attn_chunk_length=local_attn_chunk_length,
        local_num_chunks_before=1,
        local_num_chunks_after=0,
        lsh_attn_chunk_length=lsh_attn_chunk_length,
        lsh_num_chunks_before=1,
        lsh_num_chunks_after=0,
        num_hashes=4,
        num_buckets=512,
        is_decoder=True,
        initializer_range=initializer_range,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    return [model_name, config]
