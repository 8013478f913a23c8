"""The twin of the published network of 18 layers in src/worker/models/resnet, in plain PyTorch."""
import twin
from resnet50 import ResNet

if __name__ == "__main__":
    twin.run(lambda: ResNet(depth=18, num_classes=10))
