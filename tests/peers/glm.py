"""The twin of src/worker/models/glm in plain PyTorch, with the parameter names of the published checkpoints."""
import math

import torch
import torch.nn.functional as functional

import twin


def linear(in_features, out_features, deviation=0.02):
    layer = torch.nn.Linear(in_features, out_features)
    torch.nn.init.normal_(layer.weight, 0, deviation)
    torch.nn.init.zeros_(layer.bias)
    return layer


def rotate(x, angles):
    """x [B, H, T, w], angles [B, 1, T, w / 2]: the pairs (i, i + w / 2), each turned by its angle."""
    low, high = x.chunk(2, -1)
    c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((low * c - high * s, high * c + low * s), -1)


def rotate_twice(x, angles):
    """Half of a head's width by the position in the text, half by that in the span."""
    return torch.cat([rotate(half, angle) for half, angle in zip(x.chunk(2, -1), angles)], -1)


class Layer(torch.nn.Module):
    def __init__(self, width, heads, inner, layers, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        smaller = 0.02 / math.sqrt(2 * layers)
        self.input_layernorm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.ModuleDict({"query_key_value": linear(width, 3 * width),
                                              "dense": linear(width, width, smaller)})
        self.post_attention_layernorm = torch.nn.LayerNorm(width)
        self.mlp = torch.nn.ModuleDict({"dense_h_to_4h": linear(width, inner),
                                        "dense_4h_to_h": linear(inner, width, smaller)})

    def drop(self, x):
        return functional.dropout(x, self.dropout, self.training)

    def forward(self, x, hidden, angles=None):
        batch, length, width = x.shape
        mixed = self.attention.query_key_value(self.input_layernorm(x))
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in mixed.split(width, 2))
        if angles is not None:
            q, k = rotate_twice(q, angles), rotate_twice(k, angles)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        seen = self.drop(scores.masked_fill(hidden, float("-inf")).softmax(-1)) @ v
        x = x + self.drop(self.attention.dense(seen.transpose(1, 2).reshape(batch, length, width)))
        inner = functional.gelu(self.mlp.dense_h_to_4h(self.post_attention_layernorm(x)), approximate="tanh")
        return x + self.drop(self.mlp.dense_4h_to_h(inner))


class Glm(torch.nn.Module):
    def __init__(self, vocabulary=30592, width=768, layers=12, heads=12, inner=3072, positions=512, dropout=0.0,
                 rotary=False):
        super().__init__()
        self.dropout, self.rotary, self.half = dropout, rotary, width // heads // 2
        self.word_embeddings = torch.nn.Embedding(vocabulary, width)
        tables = {} if rotary else {"position_embeddings": torch.nn.Embedding(positions + 1, width),
                                    "block_position_embeddings": torch.nn.Embedding(positions + 1, width)}
        self.transformer = torch.nn.ModuleDict({
            **tables,
            "layers": torch.nn.ModuleList(Layer(width, heads, inner, layers, dropout) for _ in range(layers)),
            "final_layernorm": torch.nn.LayerNorm(width)})

    def hidden(self, tokens, positions, text):
        part = self.transformer
        x, angles = self.word_embeddings(tokens), None
        if self.rotary:
            speeds = 10000 ** -(torch.arange(0, self.half, 2, dtype=torch.double) / self.half)
            angles = [positions[:, i, None, :, None] * speeds for i in (0, 1)]
        else:
            x = x + part.position_embeddings(positions[:, 0]) + part.block_position_embeddings(positions[:, 1])
        x = functional.dropout(x, self.dropout, self.training)
        place = torch.arange(tokens.size(1))
        later = place[None, :] > place[:, None]
        hidden = (later[None] & (place[None, None, :] >= text[:, None, None]))[:, None]
        for layer in part.layers:
            x = layer(x, hidden, angles)
        return part.final_layernorm(x)

    def forward(self, tokens, positions, text):
        return functional.linear(self.hidden(tokens, positions, text), self.word_embeddings.weight)


def infilling_loss(network, tokens, positions, text, labels):
    counting = labels != -100
    logits = functional.linear(network.hidden(tokens, positions, text)[counting], network.word_embeddings.weight)
    return functional.cross_entropy(logits, labels[counting])


if __name__ == "__main__":
    twin.run(lambda: Glm(vocabulary=97, width=48, layers=2, heads=3, inner=80, positions=72),
             inputs=("tokens", "positions", "text", "labels"), num_forward=3, loss_of=infilling_loss)
