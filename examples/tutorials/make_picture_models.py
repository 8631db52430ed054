#!/usr/bin/env python3
"""Makes the networks for pictures of these tutorials, and the pictures that the programs send.

    python3 make_picture_models.py models pictures [things|text|faces|pictures ...]

It needs PyTorch and numpy (Debian: python3-torch). It draws its own training pictures. The networks are small, but have
the tensors of the tutorials' networks:

- things: six things of ImageNet, with a residual network and a logit for each of the 1,000 classes;
- text: where text is, as EAST says it, at a quarter of the resolution;
- faces: where faces are, at an eighth of the resolution, and 16 numbers for a face that are alike for one person.

Same seed, same machine, same files.
"""
import math
import os
import struct
import sys
import zlib

import numpy
import torch
from torch import nn
from torch.nn import functional

SEED = 5


# Pictures: arrays [height, width, 3] from 0 to 255.

def background(rng, height, width, noise=8):
    """A smooth ground of one colour, with some noise."""
    low = rng.uniform(0, 255, 3)
    slope = rng.uniform(-40, 40, (2, 3))
    y, x = numpy.mgrid[0:height, 0:width]
    picture = low + slope[0] * (y / height)[..., None] + slope[1] * (x / width)[..., None]
    return picture + rng.normal(0, rng.uniform(0, noise), picture.shape)


def grid(picture, x, y):
    """Distances of all pixels from a point."""
    rows, columns = numpy.mgrid[0 : picture.shape[0], 0 : picture.shape[1]]
    return columns - x, rows - y


def ellipse(picture, x, y, rx, ry, colour):
    dx, dy = grid(picture, x, y)
    picture[(dx / rx) ** 2 + (dy / ry) ** 2 <= 1] = colour


def rectangle(picture, x, y, width, height, colour):
    picture[max(0, round(y)) : max(0, round(y + height)), max(0, round(x)) : max(0, round(x + width))] = colour


def near(rng, colour, by=18):
    return numpy.array(colour) + rng.uniform(-by, by, 3)


def write_png(path, picture):
    pixels = picture.clip(0, 255).round().astype(numpy.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    size = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def export(model, path, example, inputs, outputs, axes):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.onnx.export(model, example, path, input_names=inputs, output_names=outputs, dynamic_axes=axes, opset_version=14)


def train(name, model, step, steps, rate=3e-3):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps, pct_start=0.1)
    for number in range(steps):
        loss = step()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if number % 50 == 0 or number == steps - 1:
            print(f"{name} {number}: loss {loss.item():.4f}", flush=True)
    model.eval()


# Six things, with their numbers in ImageNet.

THINGS = {948: "Granny Smith", 950: "orange", 951: "lemon", 340: "zebra", 852: "tennis ball", 920: "traffic light"}


def thing(rng, number, side=224, noise=8):
    picture = background(rng, side, side, noise)
    x, y = rng.uniform(0.4, 0.6, 2) * side
    r = rng.uniform(0.2, 0.36) * side
    if number == 340:
        dx, dy = grid(picture, x, y)
        inside = (dx / (1.3 * r)) ** 2 + (dy / r) ** 2 <= 1
        turn = rng.uniform(-0.5, 0.5)
        stripes = numpy.sin((dx * math.cos(turn) + dy * math.sin(turn)) / rng.uniform(3.5, 7)) > 0
        picture[inside & stripes] = near(rng, [235, 235, 235])
        picture[inside & ~stripes] = near(rng, [25, 25, 25])
    elif number == 920:
        rectangle(picture, x - r / 2, y - r * 1.2, r, r * 2.4, near(rng, [40, 40, 40]))
        for i, colour in enumerate(([220, 40, 30], [240, 190, 30], [40, 190, 70])):
            ellipse(picture, x, y + (i - 1) * 0.75 * r, r * 0.3, r * 0.3, near(rng, colour))
    else:
        colour = {948: [130, 190, 60], 950: [240, 140, 30], 951: [245, 225, 60], 852: [200, 230, 50]}[number]
        long = 1.35 if number == 951 else 1
        ellipse(picture, x, y, r * long, r, near(rng, colour))
        if number == 852:
            for side_of in (-1, 1):
                dx, dy = grid(picture, x + side_of * 1.3 * r, y)
                distance = numpy.sqrt(dx**2 + dy**2)
                inside = sum(part**2 for part in grid(picture, x, y)) <= r**2
                picture[inside & (abs(distance - r) < r * 0.07)] = near(rng, [245, 245, 245])
        if number == 948:
            rectangle(picture, x - 0.04 * r, y - 1.25 * r, 0.08 * r, 0.35 * r, near(rng, [90, 60, 30]))
    return picture


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.first, self.second = nn.Conv2d(before, after, 3, 2, 1), nn.Conv2d(after, after, 3, 1, 1)
        self.skip = nn.Conv2d(before, after, 1, 2)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.skip(x))


class ThingNet(nn.Module):
    """Input [N, 3, 224, 224], normalized as torchvision does; output [N, 1000]."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 7, 4, 3)
        self.blocks = nn.Sequential(Block(12, 16), Block(16, 24), Block(24, 32))
        self.head = nn.Linear(32, 1000)

    def forward(self, x):
        return self.head(self.blocks(functional.relu(self.stem(x))).mean(3).mean(2))


class Shaped(nn.Module):
    """The same network with another shape of its tensors."""

    def __init__(self, net, before=None, after=None):
        super().__init__()
        self.net, self.before, self.after = net, before, after

    def forward(self, x):
        y = self.net(x if self.before is None else x.reshape(self.before))
        return y if self.after is None else y.reshape(self.after)


class Segmenter(nn.Module):
    """Which of red, green and blue a pixel is most, as three maps of probabilities."""

    def forward(self, x):
        return (x * 4).softmax(1)


def normalized(picture):
    values = torch.tensor(picture.clip(0, 255) / 255, dtype=torch.float32)
    return ((values - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])).permute(2, 0, 1)


def make_things(models, pictures):
    rng = numpy.random.default_rng(SEED)
    net = ThingNet()
    numbers = list(THINGS)
    def batch(size):
        chosen = rng.choice(numbers, size)
        return torch.stack([normalized(thing(rng, number)) for number in chosen]), torch.tensor(chosen)
    def step():
        x, wanted = batch(16)
        return functional.cross_entropy(net(x), wanted)
    train("things", net, step, 500)
    x, wanted = batch(200)
    print(f"things: accuracy {(net(x).argmax(1) == wanted).float().mean().item():.3f}")
    def onnx(model, name, inputs, outputs, example, axes):
        export(model, os.path.join(models, name, "1", "model.onnx"), example, [inputs], [outputs], axes)
    one, rows = torch.zeros(1, 3, 224, 224), {0: "rows"}
    onnx(net, "resnet50", "input", "output", one, {})
    single = Shaped(net, (1, 3, 224, 224), (1000,))
    onnx(single, "resnet_classification", "input_tensor", "output_tensor", torch.zeros(3, 224, 224), {})
    onnx(net, "resnet50_pytorch", "INPUT__0", "OUTPUT__0", one, {"INPUT__0": rows, "OUTPUT__0": rows})
    names = ("FORMATTED_IMAGE", "CLASSIFICATION_OUTPUT")
    onnx(net, "classification_model", *names, one, {name: rows for name in names})
    names = ("FORMATTED_IMAGE", "SEGMENTATION_OUTPUT")
    onnx(Segmenter(), "segmentation_model", *names, one, {name: rows for name in names})


# Text, in letters of 5x7 dots.

FONT = {
    "A": "0e11111f111111", "C": "0e11101010110e", "D": "1e11111111111e", "E": "1f10101e10101f", "F": "1f10101e101010",
    "H": "1111111f111111", "I": "0e04040404040e", "L": "1010101010101f", "N": "11191513111111", "O": "0e11111111110e",
    "P": "1e11111e101010", "R": "1e11111e141211", "S": "0f10100e01011e", "T": "1f040404040404", "U": "1111111111110e",
    "X": "11110a040a1111",
}
DOTS = {
    letter: numpy.array([[(int(rows[i : i + 2], 16) >> (4 - c)) & 1 for c in range(5)] for i in range(0, 14, 2)], bool)
    for letter, rows in FONT.items()
}


def write(picture, x, y, scale, word, colour):
    """Writes a word, and returns its box: left, top, right, bottom."""
    for i, letter in enumerate(word):
        dots = numpy.kron(DOTS[letter], numpy.ones((scale, scale), bool))
        left = x + 6 * scale * i
        picture[y : y + 7 * scale, left : left + 5 * scale][dots] = colour
    return x, y, x + (6 * len(word) - 1) * scale, y + 7 * scale


def text_picture(rng, height=128, width=192, words=None):
    picture = background(rng, height, width)
    dark = picture.mean() < 128
    boxes = []
    for _ in range(int(rng.integers(0, 3))):
        ellipse(picture, *rng.uniform(0, [width, height]), *rng.uniform(5, 30, 2), rng.uniform(0, 255, 3))
    dark = picture.mean() < 128
    y = int(rng.integers(4, 24))
    for word in words or ["".join(rng.choice(list(FONT), rng.integers(2, 7))) for _ in range(rng.integers(1, 4))]:
        scale = int(rng.integers(2, 4))
        x = int(rng.integers(2, max(3, width - 6 * len(word) * scale)))
        if y + 7 * scale > height - 2 or x + 6 * len(word) * scale > width:
            break
        colour = rng.uniform(190, 255, 3) if dark else rng.uniform(0, 70, 3)
        boxes.append(write(picture, x, y, scale, word, colour))
        y += 7 * scale + int(rng.integers(10, 24))
    return picture, boxes


class TextNet(nn.Module):
    """EAST's tensors: [N, height, width, 3] minus the means, to scores [.., 1], and distances and angles [.., 5]."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 12, 3, 2, 1), nn.Conv2d(12, 32, 3, 2, 1)
        self.wide = nn.ModuleList(nn.Conv2d(32, 32, 3, 1, by, by) for by in (1, 2, 4, 8, 16, 1))
        self.score, self.geometry = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 5, 1)

    def forward(self, x):
        # The configuration has a batch axis before the images of EAST.
        batch, images, height, width = x.shape[0], x.shape[1], x.shape[2], x.shape[3]
        x = x.reshape(batch * images, height, width, 3).permute(0, 3, 1, 2) / 64
        x = functional.relu(self.second(functional.relu(self.first(x))))
        for layer in self.wide:
            x = x + functional.relu(layer(x))
        score = torch.sigmoid(self.score(x)).permute(0, 2, 3, 1)
        sides = torch.sigmoid(self.geometry(x)).permute(0, 2, 3, 1)
        geometry = torch.cat([sides[..., :4] * 512, (sides[..., 4:] - 0.5) * (math.pi / 2)], 3)
        rows, columns = score.shape[1], score.shape[2]
        return score.reshape(batch, images, rows, columns, 1), geometry.reshape(batch, images, rows, columns, 5)


def text_targets(boxes, height, width):
    """For each cell of 4 pixels: whether text is there, and the distances to the sides of its box."""
    score = numpy.zeros((height // 4, width // 4))
    sides = numpy.zeros((height // 4, width // 4, 4))
    y, x = numpy.mgrid[0 : height // 4, 0 : width // 4] * 4
    for left, top, right, bottom in boxes:
        inside = (x >= left + 1) & (x < right - 1) & (y >= top + 1) & (y < bottom - 1)
        score[inside] = 1
        for i, distance in enumerate((y - top, right - x, bottom - y, x - left)):
            sides[..., i][inside] = distance[inside]
    return torch.tensor(score, dtype=torch.float32), torch.tensor(sides, dtype=torch.float32)


MEANS = numpy.array([123.68, 116.78, 103.94])


def make_text(models, pictures):
    rng = numpy.random.default_rng(SEED)
    net = TextNet()
    nn.init.constant_(net.score.bias, -2)
    nn.init.constant_(net.geometry.bias, -3)
    def step():
        drawn = [text_picture(rng) for _ in range(8)]
        x = torch.tensor(numpy.stack([picture.clip(0, 255) - MEANS for picture, _ in drawn]), dtype=torch.float32)
        targets = [text_targets(boxes, 128, 192) for _, boxes in drawn]
        score, sides = (torch.stack(part) for part in zip(*targets))
        found, geometry = net(x.unsqueeze(1))
        found, geometry = found[:, 0, :, :, 0], geometry[:, 0]
        loss = functional.binary_cross_entropy(found, score)
        there = score > 0
        if there.any():
            loss = loss + functional.smooth_l1_loss(geometry[..., :4][there], sides[there]) * 0.1 + geometry[..., 4][there].abs().mean()
        return loss
    train("text", net, step, 900)
    names = ["feature_fusion/Conv_7/Sigmoid:0", "feature_fusion/concat_3:0"]
    axes = {name: {0: "batch", 1: "images", 2: "rows", 3: "columns"} for name in names}
    axes["input_images:0"] = {0: "batch", 1: "images", 2: "height", 3: "width"}
    path = os.path.join(models, "text_detection", "1", "model.onnx")
    export(net, path, torch.zeros(1, 1, 128, 192, 3), ["input_images:0"], names, axes)


# Faces: a person has colours and proportions, which pictures show with some variation.

def person(rng):
    return {
        "skin": rng.uniform([150, 90, 60], [250, 210, 190]), "hair": rng.uniform(0, 230, 3), "eyes": rng.uniform(0.28, 0.5),
        "mouth": rng.uniform(0.2, 0.5), "long": rng.uniform(1.05, 1.4), "glasses": rng.random() < 0.4, "beard": rng.random() < 0.3,
    }


def draw_face(rng, picture, who, x, y, r):
    skin, hair = near(rng, who["skin"], 8), near(rng, who["hair"], 8)
    ry = r * who["long"]
    ellipse(picture, x, y - 0.25 * r, 1.15 * r, ry, hair)
    ellipse(picture, x, y, r, ry, skin)
    if who["beard"]:
        ellipse(picture, x, y + 0.65 * ry, 0.6 * r, 0.3 * ry, hair)
    for side in (-1, 1):
        ex, ey = x + side * who["eyes"] * r, y - 0.2 * r
        if who["glasses"]:
            ellipse(picture, ex, ey, 0.25 * r, 0.25 * r, [20, 20, 20])
            ellipse(picture, ex, ey, 0.18 * r, 0.18 * r, [240, 240, 240])
        ellipse(picture, ex, ey, 0.13 * r, 0.1 * r, [250, 250, 250])
        ellipse(picture, ex, ey, 0.07 * r, 0.07 * r, [20, 20, 30])
    ellipse(picture, x, y + 0.45 * ry, who["mouth"] * r, 0.1 * r, [170, 40, 50])


class FaceFinder(nn.Module):
    """Input [N, 3, height, width] from 0 to 1; output [N, 4, height / 8, width / 8]: logit, centre and logarithm of the radius."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 12, 5, 2, 2), nn.ReLU(), nn.Conv2d(12, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 2, 2), nn.ReLU(), nn.Conv2d(32, 4, 1),
        )

    def forward(self, x):
        return self.layers(x)


class FaceNet(nn.Module):
    """Input [N, 3, 48, 48] from 0 to 1; output [N, 16] of length 1."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU(), nn.Conv2d(24, 32, 3, 2, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 36, 16),
        )

    def forward(self, x):
        y = self.layers(x)
        return y / (y * y).sum(1, keepdim=True).sqrt()


def chw(picture):
    return torch.tensor(picture.clip(0, 255) / 255, dtype=torch.float32).permute(2, 0, 1)


def make_faces(models, pictures):
    rng = numpy.random.default_rng(SEED)
    finder, net = FaceFinder(), FaceNet()
    side = 128
    def finder_step():
        inputs, there, where = [], torch.zeros(8, side // 8, side // 8), torch.zeros(8, 3, side // 8, side // 8)
        for i in range(8):
            picture = background(rng, side, side)
            for _ in range(rng.integers(0, 3)):
                ellipse(picture, *rng.uniform(0, side, 2), *rng.uniform(5, 20, 2), rng.uniform(0, 255, 3))
            places = []
            for _ in range(rng.integers(0, 4)):
                r, (x, y) = rng.uniform(14, 24), rng.uniform(24, side - 24, 2)
                if all(math.hypot(x - a, y - b) > 2.4 * max(r, c) for a, b, c in places):
                    places.append((x, y, r))
                    draw_face(rng, picture, person(rng), x, y, r)
                    column, row = int(x // 8), int(y // 8)
                    there[i, row, column] = 1
                    where[i, :, row, column] = torch.tensor([x / 8 - column, y / 8 - row, math.log(r / 16)])
            inputs.append(chw(picture))
        found = finder(torch.stack(inputs))
        weight = 1 + 20 * there
        loss = functional.binary_cross_entropy_with_logits(found[:, 0], there, weight=weight)
        cells = there > 0
        if cells.any():
            loss = loss + functional.mse_loss(found[:, 1:].permute(0, 2, 3, 1)[cells], where.permute(0, 2, 3, 1)[cells])
        return loss
    train("face finder", finder, finder_step, 900)

    def crop(who):
        picture = background(rng, 48, 48)
        draw_face(rng, picture, who, 24 + rng.uniform(-2, 2), 24 + rng.uniform(-2, 2), rng.uniform(15, 19))
        return chw(picture + rng.uniform(-12, 12))
    def net_step():
        people = [person(rng) for _ in range(32)]
        a, b = (net(torch.stack([crop(who) for who in people])) for _ in range(2))
        return functional.cross_entropy(a @ b.t() * 12, torch.arange(32))
    train("face net", net, net_step, 400)
    rows = {0: "rows"}
    export(finder, os.path.join(models, "..", "python-models", "face_finder", "1", "model.onnx"), torch.zeros(1, 3, side, side), ["image"], ["cells"],
           {"image": {0: "rows", 2: "height", 3: "width"}, "cells": {0: "rows", 2: "cell_rows", 3: "cell_columns"}})
    export(net, os.path.join(models, "..", "python-models", "facenet", "1", "model.onnx"), torch.zeros(1, 3, 48, 48), ["face"], ["embedding"],
           {"face": rows, "embedding": rows})


def draw_pictures(models, pictures):
    """The pictures that the programs send. They have no noise, so that the files are small."""
    for number in (950, 920):
        name = THINGS[number].replace(" ", "-") + ".png"
        write_png(os.path.join(pictures, name), thing(numpy.random.default_rng(number), number, 256, noise=0))
    text = numpy.ones((160, 224, 3)) * [40, 70, 110]
    ellipse(text, 190, 120, 24, 24, [210, 120, 60])
    for place, word in (((24, 24, 3), "PASTA"), ((60, 72, 2), "DINNER"), ((16, 116, 3), "TOUR")):
        print("text.png:", word, write(text, *place, word, [240, 240, 235]))
    write_png(os.path.join(pictures, "text.png"), text)
    rng = numpy.random.default_rng(40)
    anna, ben = person(rng), person(rng)
    faces = numpy.ones((128, 224, 3)) * [120, 150, 170]
    for who, place in ((anna, (40, 52, 20)), (ben, (112, 70, 22)), (anna, (184, 60, 18))):
        draw_face(rng, faces, who, *place)
    write_png(os.path.join(pictures, "faces.png"), faces)


MAKERS = {"things": make_things, "text": make_text, "faces": make_faces, "pictures": draw_pictures}


def main():
    models, pictures, names = sys.argv[1], sys.argv[2], sys.argv[3:] or list(MAKERS)
    torch.set_num_threads(1)
    os.makedirs(pictures, exist_ok=True)
    for name in names:
        torch.manual_seed(SEED)
        MAKERS[name](models, pictures)


main()
