"""The twin of src/worker/models/deepfm in plain PyTorch, with dense gradients unless asked for others."""
import torch
import torch.nn.functional as functional

import twin


class DeepFm(torch.nn.Module):
    def __init__(self, fields=(671, 9066), size=10, hidden=(400, 400, 400), dropout=0.5, sparse=False):
        super().__init__()
        self.dropout = dropout
        self.offsets = [sum(fields[:i]) for i in range(len(fields))]
        self.bias = torch.nn.Parameter(torch.zeros(1))
        self.linear = torch.nn.Embedding(sum(fields), 1, sparse=sparse)
        self.embedding = torch.nn.Embedding(sum(fields), size, sparse=sparse)
        widths = [len(fields) * size, *hidden, 1]
        self.mlp = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, *fields):
        rows = torch.stack([field + offset for field, offset in zip(fields, self.offsets)], 1)
        vectors = self.embedding(rows)
        y = self.bias + self.linear(rows).sum((1, 2))
        for i in range(rows.size(1)):  # pair by pair
            for j in range(i):
                y = y + (vectors[:, i] * vectors[:, j]).sum(1)
        x = vectors.flatten(1)
        for layer in self.mlp[:-1]:
            x = functional.dropout(torch.relu(layer(x)), self.dropout, self.training)
        return y + self.mlp[-1](x).squeeze(1)


def click_loss(network, *batch):
    return functional.binary_cross_entropy_with_logits(network(*batch[:-1]), batch[-1])


if __name__ == "__main__":
    twin.run(lambda: DeepFm(fields=(5, 7, 3), size=4, hidden=(16, 8), dropout=0.0),
             inputs=("field0", "field1", "field2", "label"), num_forward=3, loss_of=click_loss)
