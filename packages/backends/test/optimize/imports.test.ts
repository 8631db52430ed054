import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { OnnxModel, replaceFile } from "../../src/onnx-graph/onnx-model.js";
import { importModel } from "../../src/optimize/import-model.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";
import { answersOf, expectAnswers, readWritten } from "./sklearn-answers.js";

describe("models of scikit-learn", () => {
  const fixtures = fileURLToPath(new URL("./fixtures/sklearn/", import.meta.url));

  const folder = mkdtempSync(join(tmpdir(), "sklearn-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  describe("models of scikit-learn answer what predict and predict_proba do, to 1e-5", () => {
    it.each(readdirSync(fixtures))("%s", (name) => expectAnswers(join(fixtures, name), folder));

    it("texts that the encoder did not see count as no category", async () => {
      const written = readWritten(join(fixtures, "columns.json"));
      const rows = [
        ["violet", "s", 50, 0],
        ["violet", "unknown", 50, 0],
      ];
      const answers = await answersOf(join(fixtures, "columns.json"), folder, {
        ...written,
        samples: { rows },
      });
      expect(answers.get("probabilities")!.every(Number.isFinite)).toBe(true);
    });
  });

  describe("files that are faulty are refused", () => {
    const change = (name: string, edit: (text: string) => string) => {
      const path = join(folder, `changed-${name}`);
      writeFileSync(path, edit(readFileSync(join(fixtures, name), "utf8")));
      return importModel(path, folder);
    };

    it("a file that is cut, and one of another format", async () => {
      await expect(change("linear.json", (text) => text.slice(0, 400))).rejects.toThrow(
        /cannot read the scikit-learn model '.*': expected whole JSON/,
      );
      await expect(
        change("linear.json", (text) => text.replace('"tritonjs_sklearn": 1', '"tritonjs_sklearn": 9')),
      ).rejects.toThrow("expected format 1, got 9");
    });

    it("answers that are not those of scikit-learn", async () => {
      const edit = (text: string) => {
        const file = JSON.parse(text) as { steps: { offset?: number[] }[] };
        file.steps[0]!.offset![0]! += 0.5;
        return JSON.stringify(file);
      };
      await expect(change("linear.json", edit)).rejects.toThrow(
        /output 'prediction' of the converted model: expected .*, as scikit-learn answers, got/,
      );
    });
  });
});

describe("models of PyTorch", () => {
  const folder = mkdtempSync(join(tmpdir(), "torch-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  const file = (name: string, content: string | Uint8Array = "PK") => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };

  /** A program in the place of Python, which gets the arguments and the settings. */
  function standIn(name: string, code: string): string {
    const text = `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const [, , script, model, target] = process.argv;
const settings = JSON.parse(readFileSync(0, "utf8"));
const fail = (text) => { process.stderr.write("Warning: noise\\n" + text + "\\n"); process.exit(3); };
${code}
`;
    const path = file(name, text);
    chmodSync(path, 0o755);
    return path;
  }

  const doubling = (rows: number | string) =>
    onnxModel({
      name: "doubling",
      opset: 16,
      inputs: [{ name: "x", elemType: "FLOAT", dims: [rows, 2] }],
      outputs: [{ name: "output", elemType: "FLOAT", dims: [rows, 2] }],
      nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["output"] }],
    });

  /** Code that writes a graph and a run of it, whose outputs are the inputs times a factor. */
  const writing = (graph: Uint8Array, factor: number, rows: string) => `
const base64 = (values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");
writeFileSync(target, Buffer.from("${Buffer.from(graph).toString("base64")}", "base64"));
const run = (rows) => {
  const values = Array.from({ length: rows * 2 }, (_, i) => i + 1);
  const tensor = (name, list) => ({ name, dtype: "FP32", shape: [rows, 2], data: base64(list) });
  return { inputs: [tensor("x", values)], outputs: [tensor("output", values.map((one) => one * ${factor}))] };
};
writeFileSync(target + ".samples.json", JSON.stringify(${rows}.map(run)));
`;

  describe("the exporter of PyTorch, with another program in the place of Python", () => {
    const model = file("net.pt");

    it("gets the file, the shapes and types, and its graph is compared with the outputs of PyTorch", async () => {
      const python = standIn(
        "good",
        `if (settings.inputs.x.shape[0] !== 2 || settings.inputs.x.dtype !== "FP32") fail("error: no");${writing(doubling("rows"), 2, "[2, 3]")}`,
      );
      const onnx = await importModel(model, folder, { python, shapes: { x: [2] } });
      const runner = await ModelRunner.open(onnx);
      expect(runner.inputs.map(({ name, shape }) => [name, shape])).toEqual([["x", [-1, 2]]]);
      await runner.close();
    });

    it("exports again for one row where the graph has a fixed number of rows", async () => {
      const python = standIn(
        "fixed",
        `if (settings.rows) { ${writing(doubling(2), 2, "[2, 3]")} } else { if (settings.inputs.x.shape.join() !== "1,2") fail("error: shape"); ${writing(doubling(1), 2, "[1, 1]")} }`,
      );
      const onnx = await importModel(model, folder, { python, shapes: { x: [2] } });
      const runner = await ModelRunner.open(onnx);
      expect(runner.inputs[0]!.shape).toEqual([1, 2]);
      await runner.close();
    });

    it("refuses a graph whose outputs are others than those of PyTorch", async () => {
      const python = standIn("wrong", writing(doubling("rows"), 3, "[2, 3]"));
      await expect(importModel(model, folder, { python, shapes: { x: [2] } })).rejects.toThrow(
        /cannot export the PyTorch model '.*net\.pt' to ONNX: output 'output': expected the values of PyTorch, got a relative difference of/,
      );
    });

    it.each([
      [
        "error: no torch: No module named 'torch'",
        /expected a Python with torch, got No module named 'torch' from '.*'; install it/,
      ],
      ["error: input 'x': expected its shape", /to ONNX: input 'x': expected its shape/],
      ["Segmentation fault", /ended with 3: Segmentation fault/],
    ])("says what the program said: %s", async (text, message) => {
      const python = standIn("failing", `fail(${JSON.stringify(text)});`);
      await expect(importModel(model, folder, { python })).rejects.toThrow(message);
    });

    it("tells how to install PyTorch if Python is missing", async () => {
      await expect(importModel(model, folder, { python: join(folder, "missing") })).rejects.toThrow(
        /expected a Python with torch, got spawn .*missing ENOENT .* install it \(pip install torch, or apt-get install python3-torch\)/,
      );
    });
  });
});

describe("the editor of ONNX files", () => {
  const folder = mkdtempSync(join(tmpdir(), "onnx-model-"));

  afterAll(() => rmSync(folder, { recursive: true }));

  const data = Float32Array.from({ length: 32 * 32 }, (_, i) => (i % 7) - 3);

  function productBytes(external?: { readonly location: string }): Uint8Array {
    return onnxModel({
      name: "product",
      opset: 17,
      inputs: [{ name: "x", elemType: "FLOAT", dims: ["rows", 32] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["rows", 32] }],
      initializers: [{ name: "w", dims: [32, 32], data, ...(external && { external }) }],
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    });
  }

  async function answerOf(path: string): Promise<number[]> {
    const session = await InferenceSession.create(path);
    const x = new Tensor("float32", new Float32Array(32).fill(1), [1, 32]);
    const { y } = await session.run({ x });
    await session.release();
    return [...(y!.data as Float32Array)];
  }

  describe("external data", () => {
    it("is read, moved out of the model and back into it, with the same answers", async () => {
      const [from, to] = [join(folder, "from"), join(folder, "to")];
      mkdirSync(from);
      writeFileSync(join(from, "model.onnx"), productBytes());
      const model = await OnnxModel.read(join(from, "model.onnx"));
      const expected = await answerOf(join(from, "model.onnx"));
      await model.write(join(to, "model.onnx"), { externalData: true });
      const [file] = readdirSync(to).filter((name) => name.endsWith(".data"));
      expect(statSync(join(to, file!)).size).toBe(4096);
      expect(statSync(join(to, "model.onnx")).size).toBeLessThan(400);
      expect(await answerOf(join(to, "model.onnx"))).toEqual(expected);
      const again = await OnnxModel.read(join(to, "model.onnx"));
      expect(again.floatsOf(again.message.graph.initializer[0]!)).toEqual(data);
      await again.write(join(to, "whole.onnx"), { externalData: false });
      expect(await answerOf(join(to, "whole.onnx"))).toEqual(expected);
      // A model with external data keeps it by default, and one above the limit gets it.
      await (await OnnxModel.read(join(to, "model.onnx"))).write(join(to, "kept.onnx"));
      await model.copy().write(join(to, "large.onnx"), { limit: 1000 });
      expect(readdirSync(to).filter((name) => /^(kept|large).*\.data$/.test(name))).toHaveLength(2);
    });

    it("is refused outside of the model's folder, and where it is shorter than the tensor", async () => {
      const path = join(folder, "outside.onnx");
      writeFileSync(path, productBytes({ location: "../secret" }));
      expect(await outcomeOf(OnnxModel.read(path))).toContain(
        `external data of the ONNX model '${path}': expected a path inside the model's directory, got '../secret'`,
      );
      writeFileSync(path, productBytes({ location: "short.bin" }));
      writeFileSync(join(folder, "short.bin"), new Uint8Array(100));
      const model = await OnnxModel.read(path);
      expect(() => model.floatsOf(model.message.graph.initializer[0]!)).toThrow(
        `external data of tensor 'w' of the ONNX model '${path}': expected 4096 bytes in 'short.bin', got 100`,
      );
    });
  });

  describe("files that are not models", () => {
    it("are refused when they are cut at any byte, or are of another kind", async () => {
      const whole = productBytes();
      for (const length of [1, 5, 20, whole.length - 4097, whole.length - 1]) {
        const path = join(folder, "cut.onnx");
        writeFileSync(path, whole.subarray(0, length));
        const fault = await outcomeOf(OnnxModel.read(path));
        expect(fault).toContain(`INVALID_ARG cannot read the ONNX model '${path}': expected`);
      }
      writeFileSync(join(folder, "text.onnx"), "hello, this is not a model");
      expect(await outcomeOf(OnnxModel.read(join(folder, "text.onnx")))).toMatch(/^INVALID_ARG/);
      writeFileSync(join(folder, "empty.onnx"), "");
      expect(await outcomeOf(OnnxModel.read(join(folder, "empty.onnx")))).toContain("a model with a graph");
    });

    it("names the limit of protobuf for a file above 2 GB, without reading it", async () => {
      const path = join(folder, "huge.onnx");
      writeFileSync(path, "");
      truncateSync(path, 2 ** 31 + 10);
      expect(await outcomeOf(OnnxModel.read(path))).toContain(
        `cannot read the ONNX model '${path}': expected at most 2147483647 bytes, got 2147483658; protobuf ends there, so ` +
          "save the weights as external data: onnx.save(model, path, save_as_external_data=True)",
      );
      rmSync(path);
    });
  });

  describe("writing", () => {
    it("keeps every field that it does not know, and integers of 64 bits", async () => {
      const bytes = onnxModel({
        name: "limits",
        opset: 17,
        inputs: [{ name: "x", elemType: "FLOAT", dims: [4] }],
        outputs: [{ name: "y", elemType: "FLOAT", dims: [4] }],
        nodes: [
          {
            op: "Slice",
            inputs: ["x"],
            outputs: ["y"],
            attributes: { ends: { ints: [9223372036854775807n] }, starts: { ints: [-9223372036854775808n] } },
          },
        ],
      });
      // Field 99 of the model: 3 bytes that no version of ONNX has.
      const extended = new Uint8Array([...bytes, 0x9a, 0x06, 0x03, 1, 2, 3]);
      const model = OnnxModel.decode(extended);
      expect(model.message.graph.node[0]!.attribute.map(({ ints }) => ints)).toEqual([
        [9223372036854775807n],
        [-9223372036854775808n],
      ]);
      const again = Buffer.from(model.toBytes());
      expect(again.includes(Buffer.from([0x9a, 0x06, 0x03, 1, 2, 3]))).toBe(true);
      expect(OnnxModel.decode(again).message.graph.node[0]!.attribute[0]!.ints).toEqual([
        9223372036854775807n,
      ]);
    });

    it("leaves the old file whole, and nothing else, when the disk is full in the middle", () => {
      const place = join(folder, "full");
      mkdirSync(place);
      const path = join(place, "model.onnx");
      writeFileSync(path, "the old model");
      const program = `
      import { OnnxModel } from "@tritonjs/backends/optimize";
      const model = await OnnxModel.read(process.argv[1]);
      await model.write(process.argv[2]).catch((error) => console.log(error.message));
    `;
      writeFileSync(join(folder, "source.onnx"), productBytes());
      // A limit of 4 blocks of 512 bytes for files stops the writing as a full disk does.
      const script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
      const args = ["-c", script, "sh", process.execPath, "--input-type=module", "-e", program];
      const output = execFileSync("sh", [...args, join(folder, "source.onnx"), path], {
        encoding: "utf8",
        cwd: new URL("../..", import.meta.url),
      });
      expect(output).toMatch(/^cannot write '.*model\.onnx': EFBIG.*; a file that was there is unchanged\n$/);
      expect(readFileSync(path, "utf8")).toBe("the old model");
      expect(readdirSync(place)).toEqual(["model.onnx"]);
    });

    it("replaces a file by parts", async () => {
      const path = join(folder, "parts.txt");
      expect(await replaceFile(path, ["one ", Buffer.from("two")])).toBe(7);
      expect(readFileSync(path, "utf8")).toBe("one two");
    });
  });
});
