"""Python client of kernelbench: is this kernel correct, and how much faster than PyTorch is it?

    from kernelbench_judge import evaluate
    result = evaluate("level1/19", source_text, size="small")
    result["verdict"], result["speedup"]

Every evaluation is a process of the program `kernelbench`; nothing that is judged ever runs in the caller's process,
and neither PyTorch nor anything else has to be installed beside this package.
"""
from .batch import aevaluate_each, evaluate_each, evaluate_many
from .binary import NotFound, find_binary
from .evaluation import aevaluate, evaluate
from .judge import Judge
from .kernelbench import InfrastructureError, KernelExecResult, eval_kernel_against_ref
from .source import Source

__all__ = ["InfrastructureError", "Judge", "KernelExecResult", "NotFound", "Source", "aevaluate", "aevaluate_each",
           "eval_kernel_against_ref", "evaluate", "evaluate_each", "evaluate_many", "find_binary"]
