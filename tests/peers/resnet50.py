"""The residual networks of src/worker/models/resnet/standard.h in plain PyTorch, with the published parameter names."""
import torch
import torch.nn.functional as functional

import twin


class Block(torch.nn.Module):
    def __init__(self, in_channels, width, stride, bottleneck):
        super().__init__()
        out = width * 4 if bottleneck else width
        shapes = [(in_channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else \
            [(in_channels, width, 3, stride), (width, out, 3, 1)]
        self.count = len(shapes)
        for i, (before, after, kernel, step) in enumerate(shapes, 1):
            setattr(self, f"conv{i}", torch.nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{i}", torch.nn.BatchNorm2d(after))
        self.downsample = None
        if stride != 1 or in_channels != out:
            self.downsample = torch.nn.Sequential(torch.nn.Conv2d(in_channels, out, 1, stride, bias=False),
                                                  torch.nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = functional.relu(y, inplace=True)
        y += x if self.downsample is None else self.downsample(x)
        return functional.relu(y, inplace=True)


class ResNet(torch.nn.Module):
    def __init__(self, depth=50, num_classes=1000):
        super().__init__()
        blocks = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth]
        bottleneck = depth >= 50
        self.conv1 = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate(blocks):
            width, layer = 64 * 2**stage, []
            for i in range(count):
                layer.append(Block(channels, width, 2 if i == 0 and stage > 0 else 1, bottleneck))
                channels = width * 4 if bottleneck else width
            setattr(self, f"layer{stage + 1}", torch.nn.Sequential(*layer))
        self.fc = torch.nn.Linear(channels, num_classes)

    def forward(self, image):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(image)), inplace=True), 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


if __name__ == "__main__":
    twin.run(lambda: ResNet(depth=50, num_classes=10))
