"""The twin of src/worker/models/resnet in plain PyTorch."""
import torch
import torch.nn.functional as functional

import twin


class ConvNorm(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel, stride):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel, stride, kernel // 2, bias=False)
        self.norm = torch.nn.BatchNorm2d(out_channels)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(torch.nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.first = ConvNorm(in_channels, out_channels, 3, stride)
        self.second = ConvNorm(out_channels, out_channels, 3, 1)
        self.shortcut = None
        if stride != 1 or in_channels != out_channels:
            self.shortcut = ConvNorm(in_channels, out_channels, 1, stride)

    def forward(self, x):
        y = self.second(functional.relu(self.first(x)))
        return functional.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(torch.nn.Module):
    def __init__(self, in_channels=1, num_classes=10, width=16, blocks=(1, 1, 1), stem_stride=2):
        super().__init__()
        self.stem = ConvNorm(in_channels, width, 3, stem_stride)
        layers, channels = [], width
        for stage, count in enumerate(blocks):
            out = width * 2**stage
            for i in range(count):
                layers.append(Block(channels, out, 2 if i == 0 and stage > 0 else 1))
                channels = out
        self.blocks = torch.nn.ModuleList(layers)
        self.head = torch.nn.Linear(channels, num_classes)

    def forward(self, image):
        x = functional.relu(self.stem(image))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


if __name__ == "__main__":
    twin.run(ResNet)
