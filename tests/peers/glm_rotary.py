"""The twin of src/worker/models/glm with rotary positions, in plain PyTorch."""
import twin
from glm import Glm, infilling_loss

if __name__ == "__main__":
    twin.run(lambda: Glm(vocabulary=97, width=48, layers=2, heads=3, inner=80, positions=72, rotary=True),
             inputs=("tokens", "positions", "text", "labels"), num_forward=3, loss_of=infilling_loss)
