"""The twin of src/worker/models/simplenet with an activation, in plain PyTorch."""
import twin
from simplenet import SimpleNet

if __name__ == "__main__":
    twin.run(lambda: SimpleNet(image_size=36, num_classes=10, relu=True))
