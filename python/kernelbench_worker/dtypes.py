"""The element types of the protocol: their names, and their codes (the place in the list)."""
import torch

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
          torch.int16, torch.int8, torch.uint8, torch.bool)
CODES = {dtype: code for code, dtype in enumerate(DTYPES)}
NAMES = {dtype: str(dtype).removeprefix("torch.") for dtype in DTYPES}
BY_NAME = {name: dtype for dtype, name in NAMES.items()}

MAX_DIMENSIONS = 8

# What a precision casts floating tensors to; None leaves them as the problem file makes them.
PRECISIONS = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}
