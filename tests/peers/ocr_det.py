"""The twin of src/worker/models/ocr_det in plain PyTorch, in the sizes of tests/worker/models/contract_case.h."""
import torch
import torch.nn.functional as functional

import twin

#         kernel, middle, out, squeeze-excite, activation, stride: MobileNetV3 large, Howard et al. 2019, table 1
BLOCKS = [(3, 16, 16, False, "relu", 1), (3, 64, 24, False, "relu", 2), (3, 72, 24, False, "relu", 1),
          (5, 72, 40, True, "relu", 2), (5, 120, 40, True, "relu", 1), (5, 120, 40, True, "relu", 1),
          (3, 240, 80, False, "hardswish", 2), (3, 200, 80, False, "hardswish", 1), (3, 184, 80, False, "hardswish", 1),
          (3, 184, 80, False, "hardswish", 1), (3, 480, 112, True, "hardswish", 1), (3, 672, 112, True, "hardswish", 1),
          (5, 672, 160, True, "hardswish", 2), (5, 960, 160, True, "hardswish", 1), (5, 960, 160, True, "hardswish", 1)]

INPUTS = ("image", "shrink_map", "shrink_mask", "threshold_map", "threshold_mask", "outlines", "states")


def make_divisible(value, divisor=8):
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


class ConvLayer(torch.nn.Module):
    def __init__(self, inside, outside, kernel=1, stride=1, groups=1, activation=None):
        super().__init__()
        self.conv = torch.nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = torch.nn.BatchNorm2d(outside)
        self.activation = getattr(functional, activation) if activation else (lambda x: x)

    def forward(self, x):
        return self.activation(self.bn(self.conv(x)))


class SqueezeExcite(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, channels // 4, 1)
        self.conv2 = torch.nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        mean = functional.adaptive_avg_pool2d(x, 1)
        return x * functional.hardsigmoid(self.conv2(functional.relu(self.conv1(mean))))


class Bottleneck(torch.nn.Module):
    def __init__(self, inside, middle, outside, kernel, stride, squeeze, activation):
        super().__init__()
        self.shortcut = stride == 1 and inside == outside
        self.expand_conv = ConvLayer(inside, middle, activation=activation)
        self.bottleneck_conv = ConvLayer(middle, middle, kernel, stride, middle, activation)
        self.mid_se = SqueezeExcite(middle) if squeeze else None
        self.linear_conv = ConvLayer(middle, outside)

    def forward(self, x):
        y = self.bottleneck_conv(self.expand_conv(x))
        y = self.linear_conv(y if self.mid_se is None else self.mid_se(y))
        return x + y if self.shortcut else y


class Backbone(torch.nn.Module):
    def __init__(self, scale, use_se):
        super().__init__()
        channels = make_divisible(16 * scale)
        self.conv = ConvLayer(3, channels, 3, 2, activation="hardswish")
        self.widths, stages = [], [[]]
        for number, (kernel, middle, outside, squeeze, activation, stride) in enumerate(BLOCKS):
            if stride == 2 and number > 2:
                self.widths.append(channels)
                stages.append([])
            stages[-1].append(Bottleneck(channels, make_divisible(scale * middle), make_divisible(scale * outside), kernel,
                                         stride, squeeze and use_se, activation))
            channels = make_divisible(scale * outside)
        self.widths.append(make_divisible(scale * 960))
        stages[-1].append(ConvLayer(channels, self.widths[-1], activation="hardswish"))
        self.stage0, self.stage1, self.stage2, self.stage3 = (torch.nn.Sequential(*stage) for stage in stages)

    def forward(self, x):
        x = self.conv(x)
        results = []
        for stage in (self.stage0, self.stage1, self.stage2, self.stage3):
            x = stage(x)
            results.append(x)
        return results


class Neck(torch.nn.Module):
    def __init__(self, widths, outside):
        super().__init__()
        for level, width in enumerate(widths, 2):
            setattr(self, f"in{level}_conv", torch.nn.Conv2d(width, outside, 1, bias=False))
            setattr(self, f"p{level}_conv", torch.nn.Conv2d(outside, outside // 4, 3, padding=1, bias=False))

    def forward(self, features):
        c2, c3, c4, c5 = features
        grow = lambda x, factor: functional.interpolate(x, scale_factor=factor, mode="nearest")
        out5 = self.in5_conv(c5)
        out4 = self.in4_conv(c4) + grow(out5, 2)
        out3 = self.in3_conv(c3) + grow(out4, 2)
        out2 = self.in2_conv(c2) + grow(out3, 2)
        return torch.cat([grow(self.p5_conv(out5), 8), grow(self.p4_conv(out4), 4), grow(self.p3_conv(out3), 2),
                          self.p2_conv(out2)], 1)


class Head(torch.nn.Module):
    def __init__(self, inside):
        super().__init__()
        width = inside // 4
        self.conv1 = torch.nn.Conv2d(inside, width, 3, padding=1, bias=False)
        self.conv_bn1 = torch.nn.BatchNorm2d(width)
        self.conv2 = torch.nn.ConvTranspose2d(width, width, 2, 2)
        self.conv_bn2 = torch.nn.BatchNorm2d(width)
        self.conv3 = torch.nn.ConvTranspose2d(width, 1, 2, 2)

    def forward(self, x):
        x = functional.relu(self.conv_bn1(self.conv1(x)))
        x = functional.relu(self.conv_bn2(self.conv2(x)))
        return torch.sigmoid(self.conv3(x))


class Heads(torch.nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.binarize = Head(inside)
        self.thresh = Head(inside)

    def forward(self, x):
        shrink = self.binarize(x)
        if not self.training:
            return shrink
        threshold = self.thresh(x)
        return torch.cat([shrink, threshold, 1 / (1 + torch.exp(-50 * (shrink - threshold)))], 1)


class Detector(torch.nn.Module):
    def __init__(self, scale=0.35, use_se=True, neck=32):
        super().__init__()
        self.backbone = Backbone(scale, use_se)
        self.neck = Neck(self.backbone.widths, neck)
        self.head = Heads(neck)

    def forward(self, image):
        return self.head(self.neck(self.backbone(image)))


def loss_of(network, image, shrink_map, shrink_mask, threshold_map, threshold_mask, *_):
    shrink, threshold, binary = network(image).unbind(1)
    each = functional.binary_cross_entropy(shrink, shrink_map, reduction="none")
    positive, negative = shrink_map * shrink_mask, (1 - shrink_map) * shrink_mask
    num_positive = int(positive.sum())
    num_negative = min(int(negative.sum()), 3 * num_positive)
    hardest = torch.sort((negative * each).flatten(), descending=True).values[:num_negative]
    balanced = ((positive * each).sum() + hardest.sum()) / (num_positive + num_negative + 1e-6)
    union = (binary * shrink_mask).sum() + (shrink_map * shrink_mask).sum() + 1e-6
    dice = 1 - 2 * (binary * shrink_map * shrink_mask).sum() / union
    distance = ((threshold - threshold_map).abs() * threshold_mask).sum() / (threshold_mask.sum() + 1e-6)
    return 5 * balanced + dice + 10 * distance


def count(network, size):
    """Parameters, and multiply-adds of training on one picture."""
    adds = [0]

    def watch(layer, inputs, output):
        pixels = inputs[0] if isinstance(layer, torch.nn.ConvTranspose2d) else output
        adds[0] += layer.weight.numel() * pixels.shape[2] * pixels.shape[3]
    for layer in network.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.ConvTranspose2d)):
            layer.register_forward_hook(watch)
    network.train()(torch.zeros(2, 3, size, size))
    return sum(p.numel() for p in network.parameters()), adds[0]


if __name__ == "__main__":
    twin.run(Detector, INPUTS, loss_of=loss_of)
