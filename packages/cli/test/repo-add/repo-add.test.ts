import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { tinyLlama } from "../../../../examples/llama-cpp/tiny-llama.js";
import { addModel } from "../../src/index.js";
import { repoCommand } from "../../src/repo-add/repo-command.js";
import { TestTerminal } from "../support/test-terminal.js";
import { bertDirectory, encoderGraph, imageGraph, root, writeFiles } from "./source-layouts.js";

const folder = mkdtempSync(join(tmpdir(), "repo-add-"));
afterAll(() => rmSync(folder, { recursive: true }));

let places = 0;
const fresh = (name = "place") => join(folder, `${name}-${places++}`);

describe("files of llama.cpp", () => {
  it("a GGUF file with its configuration", async () => {
    const source = writeFiles(fresh("gguf"), { "tiny.gguf": tinyLlama() });
    const repository = fresh("models");
    const { kind, files } = await addModel({ source: join(source, "tiny.gguf"), repository });
    expect([kind, files]).toEqual([
      "text generation by llama.cpp, llama",
      ["tiny/config.pbtxt", "tiny/1/model.gguf"],
    ]);
    expect(readFileSync(join(repository, "tiny/config.pbtxt"), "utf8")).toContain('backend: "llamacpp"');
  });

  it("a GGUF file in parts, and one whose parts are not all there", async () => {
    const bytes = tinyLlama();
    const source = writeFiles(fresh("gguf"), {
      "a-00001-of-00002.gguf": bytes,
      "a-00002-of-00002.gguf": bytes,
    });
    const { files } = await addModel({ source, repository: fresh("models"), name: "a", dryRun: true });
    expect(files).toEqual(["a/config.pbtxt", "a/1/a-00001-of-00002.gguf", "a/1/a-00002-of-00002.gguf"]);
    rmSync(join(source, "a-00002-of-00002.gguf"));
    await expect(addModel({ source, repository: fresh("models") })).rejects.toThrow(
      "it is one of 2 parts: expected 'a-00002-of-00002.gguf' beside it, got none",
    );
  });
});

it.each(["keras", "h5"])("a file of Keras, .%s, with the packages that it needs", async (ending) => {
  const source = join(writeFiles(fresh("keras"), { [`digits.${ending}`]: "PK" }), `digits.${ending}`);
  const { files, notes } = await addModel({ source, repository: fresh("models"), check: false });
  expect(files).toEqual(["digits/config.pbtxt", `digits/1/model.${ending}`]);
  expect(notes).toEqual([expect.stringContaining("needs the package")]);
  await expect(addModel({ source, repository: fresh("models") })).rejects.toThrow(/its zip file is damaged/);
});

describe("what is not served is refused by name, and nothing is written", () => {
  const refusals: readonly (readonly [string, () => string, RegExp])[] = [
    ["a missing file", () => join(folder, "missing"), /cannot add '.*missing': cannot read it: ENOENT/],
    [
      "an empty directory",
      () => writeFiles(fresh("empty"), { "a.txt": "" }),
      /expected a directory of Hugging Face/,
    ],
    [
      "weights without a graph",
      () =>
        writeFiles(fresh("raw"), {
          "config.json": { architectures: ["LlamaForCausalLM"] },
          "model.safetensors": "x",
        }),
      /expected an ONNX graph .* got none for LlamaForCausalLM; export it: optimum-cli export onnx/,
    ],
    [
      "an encoder with a decoder",
      () =>
        writeFiles(fresh("whisper"), {
          "config.json": { architectures: ["WhisperForConditionalGeneration"] },
          "onnx/encoder_model.onnx": encoderGraph(),
          "onnx/decoder_model_merged.onnx": encoderGraph(),
        }),
      /WhisperForConditionalGeneration has an encoder beside its decoder/,
    ],
    [
      "a decoder without keys and values",
      () =>
        bertDirectory(
          fresh("gpt"),
          { architectures: ["GPT2LMHeadModel", "x"] },
          { "model.onnx": encoderGraph() },
        ) &&
        bertDirectory(
          fresh("llama"),
          { architectures: ["LlamaForCausalLM"] },
          { "model.onnx": encoderGraph() },
        ),
      /LlamaForCausalLM has no past keys and values/,
    ],
    [
      "a cut graph",
      () =>
        bertDirectory(
          fresh("cut"),
          { architectures: ["BertModel"] },
          { "model.onnx": encoderGraph().subarray(0, 100) },
        ),
      /model\.onnx/,
    ],
    [
      "a configuration that is not JSON",
      () => writeFiles(fresh("broken"), { "config.json": "{ not", "model.onnx": encoderGraph() }),
      /config\.json': expected JSON/,
    ],
    [
      "images that are stretched and cropped",
      () =>
        writeFiles(fresh("beit"), {
          "config.json": { architectures: ["BeitForImageClassification"] },
          "preprocessor_config.json": {
            do_center_crop: true,
            size: { height: 10, width: 10 },
            crop_size: { height: 8, width: 8 },
          },
          "model.onnx": imageGraph(),
        }),
      /images are stretched to 10x10 and cropped to 8x8, which the backend image has no step for/,
    ],
    [
      "a dense layer behind the pooling",
      () =>
        bertDirectory(
          fresh("dense"),
          { architectures: ["BertModel"] },
          { "model.onnx": encoderGraph(), "modules.json": [{ type: "sentence_transformers.models.Dense" }] },
        ),
      /modules.json has 'sentence_transformers.models.Dense'/,
    ],
    [
      "a file of another framework",
      () => join(writeFiles(fresh("x"), { "a.tflite": "\x1c\0\0\0TFL3" }), "a.tflite"),
      /got TensorFlow Lite/,
    ],
    [
      "a model of a repository",
      () => writeFiles(fresh("own"), { "config.pbtxt": "" }),
      /it is a model of a repository already/,
    ],
  ];
  it.each(refusals)("%s", async (_name, source, message) => {
    const repository = fresh("models");
    const terminal = new TestTerminal();
    expect(await repoCommand(["add", source(), "--model-repository", repository], terminal)).toBe(1);
    expect(terminal.errors).toMatch(message);
    expect(existsSync(repository)).toBe(false);
  });

  it("a model that exists, a version of other tensors, and a faulty model: the repository stays as it was", async () => {
    const repository = fresh("models");
    const iris = join(root, "examples/quickstart/iris/iris.onnx");
    await addModel({ source: iris, repository });
    const before = readdirSync(repository, { recursive: true }).sort();
    await expect(addModel({ source: iris, repository })).rejects.toThrow(
      /cannot add version 1 of model 'iris': '.*' exists; choose another --name or --version/,
    );
    const trees = join(root, "examples/tree-ensemble/model/fraud.json");
    await expect(addModel({ source: trees, repository, name: "iris", version: 2 })).rejects.toThrow(
      /cannot add a version of model 'iris': expected onnxruntime with the inputs .*, got fil with/,
    );
    const text = join(writeFiles(fresh("t"), { "trees.txt": "tree\nversion=v3\n" }), "trees.txt");
    await expect(addModel({ source: text, repository })).rejects.toThrow(/trees\.txt/);
    await expect(addModel({ source: iris, repository, name: "../up" })).rejects.toThrow(
      "name: expected letters",
    );
    expect(readdirSync(repository, { recursive: true }).sort()).toEqual(before);
  });

  it("an interruption between two files, and two at once", async () => {
    const repository = fresh("models");
    const source = join(root, "examples/text-generation/models/stories/1");
    const stop = new AbortController();
    const onProgress = (line: string) => line.includes("tokenizer.json") && stop.abort();
    await expect(addModel({ source, repository, signal: stop.signal, onProgress })).rejects.toThrow();
    expect(existsSync(repository)).toBe(false);
    const both = await Promise.allSettled(
      [1, 2].map(() => addModel({ source, repository, name: "stories" })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(readdirSync(repository)).toEqual(["stories"]);
  });
});

describe("the command", () => {
  it("shows what it would write with --dry-run", async () => {
    const repository = fresh("models");
    const terminal = new TestTerminal();
    const source = join(root, "examples/tree-ensemble/model/fraud.json");
    const args = ["add", source, "--model-repository", repository, "--dry-run", "--name", "risk"];
    expect(await repoCommand(args, terminal)).toBe(0);
    expect(terminal.output).toContain("risk: trees, xgboost_json\n");
    expect(terminal.output).toContain("  risk/1/xgboost.json\n");
    expect(terminal.output).toContain('    { name: "input__0" data_type: TYPE_FP32 dims: [ 5 ] }');
    expect(existsSync(repository)).toBe(false);
  });

  it("follows the links of a cache of Hugging Face, and names the model by it", async () => {
    const cache = fresh("cache");
    const blobs = writeFiles(join(cache, "models--org--stories/blobs"), {});
    mkdirSync(blobs, { recursive: true });
    const snapshot = join(cache, "models--org--stories/snapshots/0123abcd");
    mkdirSync(snapshot, { recursive: true });
    const source = join(root, "examples/text-generation/models/stories/1");
    for (const [i, name] of readdirSync(source).entries()) {
      writeFileSync(join(blobs, String(i)), readFileSync(join(source, name)));
      symlinkSync(join("../../blobs", String(i)), join(snapshot, name));
    }
    const repository = fresh("models");
    const terminal = new TestTerminal();
    expect(await repoCommand(["add", snapshot, "--model-repository", repository, "--link"], terminal)).toBe(
      0,
    );
    expect(terminal.output).toContain(`added version 1 of stories to ${repository}`);
    expect(statSync(join(repository, "stories/1/model.onnx")).isFile()).toBe(true);
  });
});
