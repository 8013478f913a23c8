"""The twin of src/worker/models/gpt in plain PyTorch, with the parameter names of Hugging Face's checkpoints."""
import math

import torch
import torch.nn.functional as functional

import twin


class Conv1D(torch.nn.Module):
    """A linear layer with its weight [in, out], as the published model keeps it."""

    def __init__(self, in_features, out_features, deviation=0.02):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(in_features, out_features).normal_(0, deviation))
        self.bias = torch.nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class Attention(torch.nn.Module):
    def __init__(self, width, heads, positions, layers, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width, 0.02 / math.sqrt(2 * layers))
        hidden = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(width // self.heads))
        weights = scores.masked_fill(self.hidden[:length, :length], float("-inf")).softmax(-1)
        seen = functional.dropout(weights, self.dropout, self.training) @ v
        return self.c_proj(seen.transpose(1, 2).reshape(batch, length, width))


class FeedForward(torch.nn.Module):
    def __init__(self, width, inner, layers):
        super().__init__()
        self.c_fc = Conv1D(width, inner)
        self.c_proj = Conv1D(inner, width, 0.02 / math.sqrt(2 * layers))

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(torch.nn.Module):
    def __init__(self, width, heads, inner, positions, layers, dropout):
        super().__init__()
        self.dropout = dropout
        self.ln_1 = torch.nn.LayerNorm(width)
        self.attn = Attention(width, heads, positions, layers, dropout)
        self.ln_2 = torch.nn.LayerNorm(width)
        self.mlp = FeedForward(width, inner, layers)

    def forward(self, x):
        x = x + functional.dropout(self.attn(self.ln_1(x)), self.dropout, self.training)
        return x + functional.dropout(self.mlp(self.ln_2(x)), self.dropout, self.training)


class Gpt(torch.nn.Module):
    def __init__(self, vocabulary=50257, width=768, layers=12, heads=12, inner=3072, positions=1024, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.transformer = torch.nn.ModuleDict({
            "wte": torch.nn.Embedding(vocabulary, width), "wpe": torch.nn.Embedding(positions, width),
            "h": torch.nn.ModuleList(Block(width, heads, inner, positions, layers, dropout) for _ in range(layers)),
            "ln_f": torch.nn.LayerNorm(width)})
        torch.nn.init.normal_(self.transformer.wte.weight, 0, 0.02)
        torch.nn.init.normal_(self.transformer.wpe.weight, 0, 0.02)

    def forward(self, tokens):
        part = self.transformer
        x = part.wte(tokens) + part.wpe.weight[:tokens.size(1)]
        x = functional.dropout(x, self.dropout, self.training)
        for block in part.h:
            x = block(x)
        return functional.linear(part.ln_f(x), part.wte.weight)


def language_loss(network, tokens, labels):
    return functional.cross_entropy(network(tokens).flatten(0, 1), labels.flatten())


if __name__ == "__main__":
    twin.run(lambda: Gpt(vocabulary=97, width=48, layers=3, heads=3, inner=80, positions=72),
             inputs=("tokens", "labels"), num_forward=1, loss_of=language_loss)
