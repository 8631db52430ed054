import { open } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type DataType, Triton } from "@tritonjs/core";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { irisModel } from "../../../../test/support/iris.js";
import { allTypesOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { Program } from "../../../../test/support/program.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const triton = new Triton();
afterAll(() => triton.close());

let count = 0;

/** A model on the engine `wasm`. */
const wasm = (
  model: OnnxRuntimeOptions["model"],
  more: Partial<OnnxRuntimeOptions> = {},
  config: NonNullable<Parameters<Triton["bind"]>[0]["config"]> = {},
) =>
  triton.bind({
    modelName: `wasm-${count++}`,
    inferFunc: onnxruntime({ model, engine: "wasm", intraOpNumThreads: 1, ...more }),
    config,
  });

const rows: Readonly<Partial<Record<DataType, readonly unknown[]>>> = {
  BOOL: [true, false],
  UINT8: [0, 255],
  INT8: [-128, 127],
  UINT16: [0, 65535],
  INT16: [-32768, 32767],
  INT32: [-(2 ** 31), 2 ** 31 - 1],
  UINT32: [0, 2 ** 32 - 1],
  INT64: [-(2n ** 63n), 2n ** 63n - 1n],
  UINT64: [0n, 2n ** 64n - 1n],
  FP16: [-1.5, 65504],
  FP32: [-1.5, Number.NEGATIVE_INFINITY],
  FP64: [1e300, Number.NaN],
  BYTES: ["", "ä€𝄞"],
};

describe("the engine 'wasm'", () => {
  it("answers as the engine 'worker' does", async () => {
    const worker = triton.bind({ modelName: "worker", inferFunc: onnxruntime({ model: irisModel }) });
    const handle = wasm(irisModel);
    await handle.ready();
    expect(handle.instances().map(({ details }) => details)).toEqual([
      { executionProvider: "wasm", engine: "wasm" },
    ]);
    const measurements = [5.1, 3.5, 1.4, 0.2];
    const [ours, theirs] = await Promise.all([
      handle.inferSample({ measurements }),
      worker.inferSample({ measurements }),
    ]);
    const names = ["species", "probabilities"] as const;
    for (const name of names) {
      const [got, expected] = [ours, theirs].map((one) =>
        Array.from((one as Record<string, { data: ArrayLike<number | bigint> }>)[name]!.data, Number),
      );
      got!.forEach((value, i) => void expect(value).toBeCloseTo(expected![i]!, 5));
    }
  });

  it("passes all data types, also after a file that is not a model was refused", async () => {
    const handle = wasm(allTypesOnnx([2]), {}, { batching: false });
    expect(thrownBy(() => wasm(new Uint8Array(40)))).toContain("cannot read the ONNX model");
    const inputs = Object.entries(rows).map(([name, elements]) => [`x_${name}`, elements]);
    const outputs = await triton.infer(handle.name, Object.fromEntries(inputs));
    const decode = (value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value);
    for (const [name, elements] of Object.entries(rows)) {
      const data = outputs[`y_${name}`]!.data as ArrayLike<unknown>;
      if (name === "FP16") expect(data.length).toBe(2);
      else if (name === "BOOL") expect(Array.from(data, Boolean)).toEqual(elements);
      else expect(Array.from(data, decode)).toEqual(elements);
    }
  });

  it("is refused for providers that are not on the CPU", () => {
    expect(thrownBy(() => wasm(irisModel, { executionProviders: ["cuda", "cpu"] }))).toContain(
      "engine 'wasm': expected the execution provider 'cpu', got 'cuda'; use the engine 'worker'",
    );
  });

  it("reads weights beside the model, and refuses those of more than 4 GB before it reads them", async () => {
    const data = Float32Array.of(10, 20);
    const model = onnxModel({
      name: "graph",
      opset: 17,
      inputs: [{ name: "x", elemType: "FLOAT", dims: [2] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: [2] }],
      nodes: [{ op: "Add", inputs: ["x", "w"], outputs: ["y"] }],
      initializers: [{ name: "w", dims: [2], data, external: { location: "weights.bin" } }],
    });
    await using folder = await RepositoryOnDisk.create({
      "model.onnx": model,
      "weights.bin": new Uint8Array(data.buffer),
    });
    const file = join(folder.path, "model.onnx");
    const small = wasm(file, {}, { batching: false });
    const { y } = await triton.infer(small.name, { x: [1, 2] });
    expect([...(y!.data as Float32Array)]).toEqual([11, 22]);
    // A file without blocks on the disk.
    const weights = await open(join(folder.path, "weights.bin"), "r+");
    await weights.truncate(5 * 1024 ** 3);
    await weights.close();
    expect(await outcomeOf(wasm(file, {}, { batching: false }).ready())).toMatch(
      /^UNSUPPORTED .*: expected a model that fits into the 4 GB of WebAssembly, got files of \d+ bytes; use the engine 'worker'$/,
    );
  });

  it("is refused on a processor without the instructions of SIMD", async () => {
    const program = join(import.meta.dirname, "..", "fixtures", "loads-wasm.mjs");
    const { stdout } = await new Program(
      process.execPath,
      ["--noenable-ssse3", program, fileURLToPath(irisModel)],
      {
        cwd: import.meta.dirname,
      },
    ).ended;
    expect(stdout).toBe(
      "UNSUPPORTED engine 'wasm': expected a host with WebAssembly with SIMD, got one without it\n",
    );
  });
});
