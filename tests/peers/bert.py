"""The twin of src/worker/models/bert in plain PyTorch, with the parameter names of Hugging Face's checkpoints."""
import math

import torch
import torch.nn.functional as functional

import twin


def linear(in_features, out_features):
    layer = torch.nn.Linear(in_features, out_features)
    torch.nn.init.normal_(layer.weight, 0, 0.02)
    torch.nn.init.zeros_(layer.bias)
    return layer


def table(rows, width):
    layer = torch.nn.Embedding(rows, width)
    torch.nn.init.normal_(layer.weight, 0, 0.02)
    return layer


def norm(width):
    return torch.nn.LayerNorm(width, eps=1e-12)


class Group(torch.nn.Module):
    """Modules under names."""

    def __init__(self, /, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


class Layer(torch.nn.Module):
    def __init__(self, width, heads, inner, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention = Group(
            self=Group(query=linear(width, width), key=linear(width, width), value=linear(width, width)),
            output=Group(dense=linear(width, width), LayerNorm=norm(width)))
        self.intermediate = Group(dense=linear(width, inner))
        self.output = Group(dense=linear(inner, width), LayerNorm=norm(width))

    def attend(self, x, hidden):
        part = getattr(self.attention, "self")
        batch, length, width = x.shape
        q, k, v = (layer(x).view(batch, length, self.heads, -1).transpose(1, 2)
                   for layer in (part.query, part.key, part.value))
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(width // self.heads))
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        seen = functional.dropout(weights, self.dropout, self.training) @ v
        return seen.transpose(1, 2).reshape(batch, length, width)

    def forward(self, x, hidden):
        out = self.attention.output
        seen = functional.dropout(out.dense(self.attend(x, hidden)), self.dropout, self.training)
        x = out.LayerNorm(x + seen)
        wide = functional.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(x + functional.dropout(self.output.dense(wide), self.dropout, self.training))


class Bert(torch.nn.Module):
    def __init__(self, vocabulary=30522, width=768, layers=12, heads=12, inner=3072, positions=512, types=2, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.bert = Group(
            embeddings=Group(word_embeddings=table(vocabulary, width), position_embeddings=table(positions, width),
                             token_type_embeddings=table(types, width), LayerNorm=norm(width)),
            encoder=Group(layer=torch.nn.ModuleList(Layer(width, heads, inner, dropout) for _ in range(layers))),
            pooler=Group(dense=linear(width, width)))
        self.cls = Group(predictions=Group(transform=Group(dense=linear(width, width), LayerNorm=norm(width))),
                         seq_relationship=linear(width, 2))
        self.cls.predictions.bias = torch.nn.Parameter(torch.zeros(vocabulary))

    def hidden(self, tokens, types, mask):
        part = self.bert.embeddings
        x = part.word_embeddings(tokens) + part.position_embeddings.weight[:tokens.size(1)] + \
            part.token_type_embeddings(types)
        x = functional.dropout(part.LayerNorm(x), self.dropout, self.training)
        hidden = (mask == 0)[:, None, None, :]
        for layer in self.bert.encoder.layer:
            x = layer(x, hidden)
        return x

    def language(self, x):
        part = self.cls.predictions
        x = part.transform.LayerNorm(functional.gelu(part.transform.dense(x)))
        return functional.linear(x, self.bert.embeddings.word_embeddings.weight, part.bias)

    def forward(self, tokens, types, mask):
        return self.language(self.hidden(tokens, types, mask))

    def loss(self, tokens, types, mask, masked, following):
        x = self.hidden(tokens, types, mask)
        chosen = masked != -100  # only these go through the large layer, as in every tuned implementation
        language = functional.cross_entropy(self.language(x[chosen]), masked[chosen])
        pooled = torch.tanh(self.bert.pooler.dense(x[:, 0]))
        return language + functional.cross_entropy(self.cls.seq_relationship(pooled), following)


class BertClassifier(Bert):
    def __init__(self, classes=2, **sizes):
        super().__init__(**sizes)
        del self.cls
        self.classifier = linear(self.bert.pooler.dense.out_features, classes)

    def forward(self, tokens, types, mask):
        pooled = torch.tanh(self.bert.pooler.dense(self.hidden(tokens, types, mask)[:, 0]))
        return self.classifier(functional.dropout(pooled, self.dropout, self.training))


def pretraining_loss(network, *batch):
    return network.loss(*batch)


if __name__ == "__main__":
    twin.run(lambda: Bert(vocabulary=101, width=48, layers=2, heads=3, inner=80, positions=70),
             inputs=("tokens", "types", "mask", "masked", "next"), num_forward=3, loss_of=pretraining_loss)
