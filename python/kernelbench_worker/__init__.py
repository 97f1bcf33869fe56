"""The `torch` worker: runs a PyTorch model on command, and judges nothing.

One process of it holds the reference or one candidate. The judge drives it as docs/protocol.md
says, times it from outside and believes nothing that it answers. Runs on Python 3.10 and torch 2.9
or later, and imports nothing else.
"""
