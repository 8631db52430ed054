import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DataType, type Elements, Tensor } from "@tritonjs/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { importModel } from "../../src/optimize/import-model.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";

const folder = mkdtempSync(join(tmpdir(), "torch-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starting a Python with its libraries takes long on a busy machine. */
const PATIENCE_MS = 600_000;

const python = [process.env.TRITONJS_PYTHON, "python3", "/usr/bin/python3"].find(
  (one) => one !== undefined && spawnSync(one, ["-c", "import torch"]).status === 0,
);
const hasExport =
  python !== undefined && spawnSync(python, ["-c", "import torch.export; torch.export.Dim"]).status === 0;
const withoutExport = hasExport
  ? ""
  : " (skipped: no Python with torch 2.1 was found; TRITONJS_PYTHON may name one)";

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

  it.skipIf(!hasExport)(`exports programs of torch.export${withoutExport}`, async () => {
    save(
      "words.pt2",
      `class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = torch.nn.Embedding(4, 8), torch.nn.LayerNorm(8)
        self.attention, self.last = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.Linear(8, 3)
    def forward(self, ids, scale):
        words = self.table(ids)
        made, _ = self.attention(words, words, words)
        made = self.norm(words + torch.nn.functional.gelu(made))
        return self.last(made) * scale.unsqueeze(1), made.sum(1)
class Keywords(torch.nn.Module):
    def forward(self, x, *, factor):
        count, width = x.shape
        return {"sum": (x.view(count, 2, width // 2).transpose(1, 2) * factor.view(count, 1, 1)).sum(1)}
rows = torch.export.Dim("rows")
def save(name, model, args, kwargs, shapes):
    torch.export.save(torch.export.export(model.eval(), args, kwargs, dynamic_shapes=shapes), path.replace("words", name))
save("words", Words(), (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 3)), {}, {"ids": {0: rows}, "scale": {0: rows}})
save("keywords", Keywords(), (torch.ones(2, 4),), {"factor": torch.ones(2)}, {"x": {0: rows}, "factor": {0: rows}})
save("fixed", torch.nn.Linear(4, 2), (torch.ones(1, 4),), {}, None)`,
    );

    const openings: Record<string, unknown> = {};
    for (const name of ["words", "keywords", "fixed"]) {
      const onnx = await exported(join(folder, `${name}.pt2`), {});
      const runner = await ModelRunner.open(onnx);
      openings[name] = runner.inputs.map(({ dtype, shape }) => [dtype, ...shape]);
      const samples = JSON.parse(readFileSync(`${onnx}.samples.json`, "utf8"));
      for (const { inputs, outputs } of samples) {
        const given = await runner.run(new Map(inputs.map((one: Written) => [one.name, tensorOf(one)])));
        for (const output of outputs as Written[])
          expectClose(given.get(output.name)!.elements, tensorOf(output).elements);
      }
      await runner.close();
    }
    // Shapes and types are those of the program. A program for one number of rows keeps it.
    expect(openings).toEqual({
      words: [
        ["INT64", -1, 5],
        ["FP32", -1, 3],
      ],
      keywords: [
        ["FP32", -1, 4],
        ["FP32", -1],
      ],
      fixed: [["FP32", 1, 4]],
    });
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

interface Written {
  readonly name: string;
  readonly dtype: DataType;
  readonly shape: readonly number[];
  readonly data: string;
}

const tensorOf = ({ dtype, shape, data }: Written) =>
  Tensor.fromBytes(dtype, shape, new Uint8Array(Buffer.from(data, "base64")));

function expectClose(given: Elements, expected: Elements): void {
  expect(Array.from(given as Float32Array)).toEqual(
    Array.from(expected as Float32Array, (value) => expect.closeTo(value, 5)),
  );
}
