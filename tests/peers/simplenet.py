"""The twin of src/worker/models/simplenet in plain PyTorch."""
import torch

import twin


class SimpleNet(torch.nn.Module):
    def __init__(self, image_size=784, num_classes=10, relu=False):
        super().__init__()
        self.relu = relu
        self.fc1 = torch.nn.Linear(image_size, image_size)
        self.fc2 = torch.nn.Linear(image_size, image_size)
        self.fc3 = torch.nn.Linear(image_size, image_size)
        self.fc4 = torch.nn.Linear(image_size, image_size)
        self.fc5 = torch.nn.Linear(image_size, num_classes)

    def forward(self, image):
        x = self.fc1(image.flatten(1))
        for layer in (self.fc2, self.fc3, self.fc4, self.fc5):
            x = layer(torch.relu(x) if self.relu else x)
        return x


if __name__ == "__main__":
    twin.run(SimpleNet)
