"""Trains a small network on Fisher's irises and writes it as TorchScript."""

import csv
import io
import pathlib
import zipfile

import torch

folder = pathlib.Path(__file__).parent
with open(folder.parent / "quickstart" / "iris" / "iris.csv") as file:
    _, *lines = csv.reader(file)
names = ["setosa", "versicolor", "virginica"]
x = torch.tensor([[float(value) for value in line[:4]] for line in lines])
species = torch.tensor([names.index(line[4]) for line in lines])


class Flowers(torch.nn.Module):
    """Probabilities of the species for rows of measurements in centimetres."""

    def __init__(self, mean, deviation):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    def scores(self, measurements):
        return self.layers((measurements - self.mean) / self.deviation)

    def forward(self, measurements):
        return self.scores(measurements).softmax(dim=1)


torch.manual_seed(1)
model = Flowers(x.mean(dim=0), x.std(dim=0))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model.scores(x), species).backward()
    optimizer.step()

right = (model(x).argmax(dim=1) == species).sum().item()

# The file of torch without its debug information, which holds the paths of this machine.
saved = zipfile.ZipFile(io.BytesIO(torch.jit.script(model.eval()).save_to_buffer()))
with zipfile.ZipFile(folder / "models" / "flowers" / "1" / "model.pt", "w") as file:
    for entry in saved.infolist():
        if not entry.filename.endswith(".debug_pkl"):
            file.writestr(entry, saved.read(entry))

print(f"{right} of {len(x)} flowers are recognized")
