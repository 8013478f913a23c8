"""The twin of src/worker/models/llama whose last layer is the table of embeddings, in plain PyTorch."""
import twin
from gpt import language_loss
from llama import Llama

if __name__ == "__main__":
    twin.run(lambda: Llama(vocabulary=97, width=48, layers=2, heads=6, shared=2, inner=64, tied=True),
             inputs=("tokens", "labels"), num_forward=1, loss_of=language_loss)
