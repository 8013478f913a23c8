"""The twin of src/worker/models/llama in plain PyTorch, with the parameter names of Hugging Face's checkpoints."""
import math

import torch
import torch.nn.functional as functional

import twin
from bert import Group
from gpt import language_loss


def linear(in_features, out_features):
    layer = torch.nn.Linear(in_features, out_features, bias=False)
    torch.nn.init.normal_(layer.weight, 0, 0.02)
    return layer


class RmsNorm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, base):
    """x [B, H, T, d]: the pair (i, i + d/2) turns by position * base^(-2i/d), as complex numbers."""
    half = x.size(-1) // 2
    angles = torch.outer(torch.arange(x.size(2)).double(), base ** (-torch.arange(half).double() / half))
    pairs = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], -1).to(x.dtype)


class Layer(torch.nn.Module):
    def __init__(self, width, heads, shared, inner, base):
        super().__init__()
        self.heads, self.shared, self.base = heads, shared, base
        narrow = width // heads * shared
        self.self_attn = Group(q_proj=linear(width, width), k_proj=linear(width, narrow), v_proj=linear(width, narrow),
                               o_proj=linear(width, width))
        self.mlp = Group(gate_proj=linear(width, inner), up_proj=linear(width, inner), down_proj=linear(inner, width))
        self.input_layernorm = RmsNorm(width)
        self.post_attention_layernorm = RmsNorm(width)

    def attend(self, x):
        part = self.self_attn
        batch, length, width = x.shape
        q, k, v = (layer(x).view(batch, length, -1, width // self.heads).transpose(1, 2)
                   for layer in (part.q_proj, part.k_proj, part.v_proj))
        q, k = rotate(q, self.base), rotate(k, self.base)
        k, v = (y.repeat_interleave(self.heads // self.shared, 1) for y in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        seen = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        return part.o_proj(seen.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.input_layernorm(x))
        y = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(functional.silu(self.mlp.gate_proj(y)) * self.mlp.up_proj(y))


class Llama(torch.nn.Module):
    def __init__(self, vocabulary=32000, width=2048, layers=22, heads=32, shared=4, inner=5632, base=10000.0,
                 tied=False):
        super().__init__()
        table = torch.nn.Embedding(vocabulary, width)
        torch.nn.init.normal_(table.weight, 0, 0.02)
        self.model = Group(embed_tokens=table, norm=RmsNorm(width), layers=torch.nn.ModuleList(
            Layer(width, heads, shared, inner, base) for _ in range(layers)))
        self.lm_head = None if tied else linear(width, vocabulary)

    def forward(self, tokens):
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x)
        head = self.lm_head or self.model.embed_tokens
        return functional.linear(self.model.norm(x), head.weight)


if __name__ == "__main__":
    twin.run(lambda: Llama(vocabulary=97, width=48, layers=2, heads=6, shared=2, inner=64),
             inputs=("tokens", "labels"), num_forward=1, loss_of=language_loss)
