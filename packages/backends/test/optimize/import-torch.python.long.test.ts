import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { importModel } from "../../src/optimize/import-model.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";

const folder = mkdtempSync(join(tmpdir(), "torch-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starting a Python with its libraries takes long on a busy machine. */
const PATIENCE_MS = 300_000;

const python = ["python3", "/usr/bin/python3"].find(
  (one) => spawnSync(one, ["-c", "import torch"]).status === 0,
);

describe.skipIf(python === undefined)("the PyTorch of this machine", { timeout: PATIENCE_MS }, () => {
  const save = (name: string, code: string) => {
    const path = join(folder, name);
    const text = `import torch\ntorch.set_num_threads(1)\ntorch.manual_seed(0)\npath = ${JSON.stringify(path)}\n${code}`;
    const { status, stderr } = spawnSync(python!, ["-c", text], { encoding: "utf8" });
    expect(status, stderr).toBe(0);
    return path;
  };
  const exported = (path: string, options: object) =>
    importModel(path, folder, { python: python!, ...options });

  it("exports a script of layers, and a trace with tokens and an LSTM", async () => {
    const script = save(
      "layers.pt",
      "torch.jit.script(torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))).save(path)",
    );
    const runner = await ModelRunner.open(await exported(script, { shapes: { input: [6] } }));
    expect([runner.inputs[0]!.shape, runner.outputs[0]!.shape]).toEqual([
      [-1, 6],
      [-1, 3],
    ]);
    await runner.close();
    const trace = save(
      "words.pt",
      `class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.cell = torch.nn.Embedding(4, 5), torch.nn.LSTM(5, 7, batch_first=True)
    def forward(self, ids, scale):
        made, _ = self.cell(self.table(ids))
        return made * scale.unsqueeze(1), made.sum(1)
torch.jit.trace(Words(), (torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 7))).save(path)`,
    );
    const words = await ModelRunner.open(
      await exported(trace, { shapes: { ids: [3], scale: [7] }, dtypes: { ids: "INT64" } }),
    );
    expect(words.outputs.map(({ name }) => name)).toEqual(["output_0", "output_1"]);
    await words.close();
  });

  it("names an input without a shape, and refuses weights without a graph", async () => {
    const script = save("one.pt", "torch.jit.script(torch.nn.Linear(2, 2)).save(path)");
    await expect(exported(script, {})).rejects.toThrow(
      "input 'input': expected its shape, because PyTorch's files have none: --shape input:<sizes>",
    );
    const weights = save("weights.pt", "torch.save(torch.nn.Linear(2, 2).state_dict(), path)");
    await expect(exported(weights, {})).rejects.toThrow(
      "expected TorchScript or a program of torch.export, got weights or a pickled module, which have no graph",
    );
  });
});
