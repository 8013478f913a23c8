"""The twin of src/worker/models/bert with classes of texts, in plain PyTorch."""
import torch.nn.functional as functional

import twin
from bert import BertClassifier


def classification_loss(network, tokens, types, mask, label):
    return functional.cross_entropy(network(tokens, types, mask), label)


if __name__ == "__main__":
    twin.run(lambda: BertClassifier(classes=4, vocabulary=101, width=48, layers=2, heads=3, inner=80, positions=70),
             inputs=("tokens", "types", "mask", "label"), num_forward=3, loss_of=classification_loss)
