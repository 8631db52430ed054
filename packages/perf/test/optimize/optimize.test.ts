import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VariantComparison } from "@tritonjs/backends/optimize";
import { readPrototxt } from "@tritonjs/repository/config";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import {
  chooseVariant,
  errorFault,
  leadingRuns,
  type VariantReport,
  type VariantRun,
} from "../../src/optimize/choose-variant.js";
import { optimizeCommand } from "../../src/optimize/optimize-command.js";
import { addToRepository } from "../../src/optimize/variant-machine.js";

const run = (rate: number, others: Partial<VariantRun> = {}): VariantRun => ({
  batchSize: 1,
  threads: 0,
  concurrency: 1,
  rate,
  cpuMs: 1000 / rate,
  latencyMs: 1000 / rate,
  p99Ms: 2000 / rate,
  memoryMb: 100,
  spread: 0.01,
  ...others,
});

const form = (name: string, bytes: number, runs: readonly VariantRun[], fault?: string): VariantReport => ({
  name,
  text: name,
  layers: [],
  kept: [],
  bytes,
  worstLayers: [],
  runs,
  ...(fault !== undefined && { fault }),
});

const original = form("original", 1000, [run(100)]);

describe("the choice of a form", () => {
  it("takes the highest rate, the lowest latency or the smallest file, by the goal", () => {
    const forms = [
      original,
      form("fast", 800, [run(200), run(900, { batchSize: 8, latencyMs: 9 })]),
      form("prompt", 700, [run(300)]),
      form("small", 200, [run(50)]),
    ];
    const names = (["rate", "latency", "size"] as const).map(
      (goal) => chooseVariant(forms, goal, {})?.variant.name,
    );
    expect(names).toEqual(["fast", "prompt", "small"]);
    expect(chooseVariant(forms, "rate", {})?.reason).toBe(
      "highest rate of 4 forms that are within the limits: 900.0 rows a second of processor time with 8 rows a request, 9.00 times the original's, " +
        "0.80 times the original's size",
    );
  });

  it("compares its size with the original also where that was not measured", () => {
    const forms = [form("original", 1000, [], "it did not answer"), form("fast", 250, [run(200)])];
    expect(chooseVariant(forms, "rate", {})?.reason).toBe(
      "highest rate of the only form that is within the limits: 200.0 rows a second of processor time with 1 row a request, 0.25 times the original's size",
    );
  });

  it("compares processor time for the goal rate, whatever the clock of a busy machine says", () => {
    const forms = [original, form("lucky", 800, [run(500, { cpuMs: 9 })]), form("fast", 900, [run(90)])];
    forms.push(form("fastest", 900, [run(80, { cpuMs: 5 }), run(70, { cpuMs: 4, batchSize: 8 })]));
    expect(chooseVariant(forms, "rate", {})).toMatchObject({
      variant: { name: "fastest" },
      run: { cpuMs: 4 },
    });
  });

  it("takes the number of threads of the chosen form by the clock, because threads add to processor time", () => {
    const forms = [original, form("fast", 900, [run(500), run(800, { threads: 2, cpuMs: 2.5 })])];
    expect(chooseVariant(forms, "rate", {})).toMatchObject({
      variant: { name: "fast" },
      run: { threads: 2 },
    });
  });

  it("never takes a form with a fault, and the smaller one of two that are as fast", () => {
    const forms = [
      original,
      form(
        "wrong",
        100,
        [run(1e6)],
        "accuracy 12.0% is 80.0 points below the original's 92.0%: at most 0.5 are allowed",
      ),
      form("large", 900, [run(202)]),
      form("small", 300, [run(200)]),
    ];
    expect(chooseVariant(forms, "rate", {})?.variant.name).toBe("small");
    expect(chooseVariant([forms[1]!], "size", {})).toBeUndefined();
  });

  it("keeps the limit on the memory, also of the smallest file", () => {
    const forms = [
      form("original", 1000, [run(100, { memoryMb: 300 })]),
      form("fast", 500, [run(200, { memoryMb: 300 })]),
      form("fast-low-memory", 500, [run(150, { memoryMb: 200 })]),
    ];
    for (const goal of ["rate", "size"] as const)
      expect(chooseVariant(forms, goal, { maxMemoryMb: 250 })?.variant.name).toBe("fast-low-memory");
    expect(chooseVariant(forms, "rate", { maxMemoryMb: 100 })).toBeUndefined();
  });

  it("keeps the limits on the latency and the size", () => {
    const forms = [original, form("late", 400, [run(500, { p99Ms: 80 }), run(150, { p99Ms: 8 })])];
    expect(chooseVariant(forms, "rate", { latencyBudgetMs: 10 })?.run?.rate).toBe(150);
    expect(chooseVariant(forms, "rate", { latencyBudgetMs: 1 })).toBeUndefined();
    expect(chooseVariant(forms, "rate", { maxBytes: 300 })).toBeUndefined();
  });
});

describe("the runs that are measured again", () => {
  it("are those near the best, of any form and load, the best first", () => {
    const forms = [
      original,
      form("fast", 800, [run(900), run(1000, { batchSize: 8 })]),
      form("prompt", 700, [run(760, { concurrency: 4 }), run(300)]),
      form("wrong", 100, [run(5000)], "output 'y' differs by 20.0%: at most 10.0% are allowed"),
    ];
    const found = leadingRuns(forms, "rate", {}).map(({ variant, run }) => [variant.name, run!.rate]);
    expect(found).toEqual([
      ["fast", 1000],
      ["fast", 900],
      ["prompt", 760],
    ]);
    expect(leadingRuns(forms, "size", {})).toEqual([]);
    expect(leadingRuns(forms, "rate", { latencyBudgetMs: 1 })).toEqual([]);
  });
});

describe("the limits on errors", () => {
  const output = { name: "y", largest: 1, mean: 0.1, relative: 0.02, agreement: 1, isReal: true };
  const comparison = (
    others: Partial<VariantComparison["outputs"][number]>,
    accuracy?: number,
  ): VariantComparison => ({
    outputs: [{ ...output, ...others }],
    samples: 10,
    ...(accuracy !== undefined && { accuracy }),
  });

  it("count accuracy where there are labels, whatever the outputs", () => {
    const best = comparison({}, 0.9);
    expect(errorFault(comparison({ relative: 5 }, 0.895), best, {})).toBeUndefined();
    expect(errorFault(comparison({ relative: 0 }, 0.894), best, {})).toBe(
      "accuracy 89.4% is 0.6 points below the original's 90.0%: at most 0.5 are allowed",
    );
  });

  it("count the relative error of reals, and the agreement of answers alone, without labels", () => {
    const same = comparison({});
    expect(errorFault(same, same, {})).toBeUndefined();
    expect(errorFault(same, same, { maxError: 0.01 })).toBe(
      "output 'y' differs by 2.0%: at most 1.0% are allowed",
    );
    expect(errorFault(comparison({ relative: Number.NaN }), same, {})).toContain(
      "output 'y' differs by infinitely",
    );
    expect(errorFault(comparison({ isReal: false, agreement: 0.99 }), same, {})).toBe(
      "output 'y' agrees in 99.0% of its elements: at least 99.5% are needed",
    );
  });
});

describe("variant machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "variant-machine-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  it("a form is in the repository with its file and the parameters of its sessions", async () => {
    const file = join(folder, "clean.onnx");
    writeFileSync(file, "a model");
    const report = {
      name: "clean-low-memory",
      text: "",
      layers: [],
      kept: [],
      bytes: 7,
      worstLayers: [],
      runs: [],
    };
    await addToRepository(folder, { report, file, parameters: { enable_mem_arena: "0" } }, 8, copyFile);
    const place = join(folder, "clean-low-memory");
    expect(readFileSync(join(place, "1", "model.onnx"), "utf8")).toBe("a model");
    expect(readPrototxt(readFileSync(join(place, "config.pbtxt"), "utf8"))).toMatchObject({
      name: "clean-low-memory",
      backend: "onnxruntime",
      maxBatchSize: 8,
      parameters: { enable_mem_arena: { stringValue: "0" } },
    });
  });
});

describe("bad input", () => {
  const folder = mkdtempSync(join(tmpdir(), "optimize-bad-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  async function errorOf(...args: string[]): Promise<string> {
    const errors: string[] = [];
    const terminal = { write: () => {}, writeError: (text: string) => void errors.push(text) };
    const code = await optimizeCommand([...args, "-e", join(folder, "results")], terminal);
    return `${code} ${errors.at(-1)?.trimEnd()}`;
  }

  function file(name: string, content: string | Uint8Array): string {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  }

  const value = (name: string, ...dims: (number | string)[]) => ({ name, elemType: "FLOAT" as const, dims });

  const product = () =>
    onnxModel({
      name: "product",
      opset: 17,
      inputs: [value("x", "rows", "length", 32)],
      outputs: [value("y", "rows", "length", 32)],
      initializers: [{ name: "w", dims: [32, 32], data: new Float32Array(1024).fill(0.01) }],
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    });

  describe("files that are not models are refused by name", () => {
    const formats: readonly (readonly [string, string | Uint8Array, string])[] = [
      [
        "keras.h5",
        Buffer.from("\x89HDF\r\n", "latin1"),
        "got Keras (HDF5); convert it: python -m tf2onnx.convert --keras",
      ],
      ["net.keras", "PK\x03\x04", "got Keras (a ZIP archive)"],
      ["net.gguf", "GGUF\x03", "got GGUF"],
      ["net.tflite", "\x1c\0\0\0TFL3", "got TensorFlow Lite"],
      ["net.ort", "\x1c\0\0\0ORTM", "got ONNX Runtime's own format"],
      ["net.pkl", Buffer.from([0x80, 4, 0x95]), "got a pickle of Python"],
      ["frozen.pb", "\n\x10", "got a frozen graph of TensorFlow"],
    ];
    it.each(formats)("%s", async (name, content, text) => {
      const path = file(name, content);
      expect(await errorOf(path)).toContain(
        `99 error: Unsupported: model '${path}': expected an ONNX file, ${text}`,
      );
    });

    it("a missing file, a directory without a model, and a file that is cut", async () => {
      expect(await errorOf(join(folder, "missing.onnx"))).toMatch(
        /^99 error: Not found: model '.*missing\.onnx': expected a file or directory, cannot read it: ENOENT/,
      );
      mkdirSync(join(folder, "saved"));
      expect(await errorOf(join(folder, "saved"))).toContain("got a directory of TensorFlow");
      expect(await errorOf(file("cut.onnx", product().subarray(0, 300)))).toMatch(
        /^99 error: .* cannot read the ONNX model '.*cut\.onnx': expected a whole protobuf message, got 300 bytes/,
      );
    });
  });

  describe("samples that do not fit are refused", () => {
    it("a shape that the model does not take, and labels that are too few", async () => {
      const path = file("product.onnx", product());
      expect(await errorOf(path, "--shape", "x:3,33")).toContain(
        `shape of input 'x' of the ONNX model '${path}': expected [-1,-1,32], got [1,3,33]`,
      );
      expect(await errorOf(path, "--shape", "z:3,32")).toContain(
        `shape 'z': expected an input of the ONNX model '${path}' (x), got 'z'`,
      );
      expect(await errorOf(path, "--dimension", "width:3")).toContain(
        `dimension 'width': expected a named dimension of the ONNX model '${path}' (rows, length), got 'width'`,
      );
      const labels = file("labels.txt", "1\n2\n");
      expect(await errorOf(path, "--labels", labels, "--samples", "1")).toContain(
        "labels: expected 8, one for each row of the samples, got 2",
      );
      expect(await errorOf(path, "--labels", file("words.txt", "1\ncat\n"))).toContain(
        "expected a whole number in line 2, got 'cat'",
      );
      expect(await errorOf(path, "--input-data", file("x.json", '{"data":[{"z":[1]}]}'))).toContain(
        "expected inputs of model 'model' ('x'), got 'z'",
      );
    });

    it("inputs of texts, which nothing generates", async () => {
      const path = file(
        "texts.onnx",
        onnxModel({
          name: "texts",
          opset: 17,
          inputs: [{ name: "words", elemType: "STRING", dims: ["rows"] }],
          outputs: [{ name: "same", elemType: "STRING", dims: ["rows"] }],
          nodes: [{ op: "Identity", inputs: ["words"], outputs: ["same"] }],
        }),
      );
      expect(await errorOf(path)).toContain(
        `input 'words' of the ONNX model '${path}': expected inputs to be given, because values of type BYTES are not generated`,
      );
    });
  });

  it.each(["making clean", "making static-int8"])(
    "Ctrl-C at '%s' ends with a report of the forms until then",
    async (step) => {
      const path = file("interrupted.onnx", product());
      const exportPath = join(folder, step);
      const told: string[] = [];
      let stop = () => {};
      const terminal = {
        write: (text: string) => void told.push(text),
        writeError: (text: string) => {
          told.push(text);
          if (text.startsWith(step)) stop();
        },
        stopRequested: () => new Promise<void>((done) => (stop = done)),
      };
      expect(await optimizeCommand([path, "-e", exportPath], terminal)).toBe(130);
      expect(told.join("")).toContain("Interrupted before a form was chosen.");
      expect(told.join("")).not.toContain("measuring");
      const { variants } = JSON.parse(readFileSync(join(exportPath, "report.json"), "utf8"));
      expect(variants[0]).toMatchObject({ name: "original" });
    },
  );
});
