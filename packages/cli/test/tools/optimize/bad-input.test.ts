import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../../examples/onnx-writer/onnx-writer.js";
import { optimizeCommand } from "../../../src/optimize/optimize-command.js";

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
