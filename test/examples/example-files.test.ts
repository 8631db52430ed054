import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import {
  type OnnxElementType,
  type OnnxModel,
  type OnnxTensor,
  onnxElementTypes,
  onnxModel,
} from "../../examples/onnx-writer/onnx-writer.js";
import { irisSpecies, parseIris } from "../../examples/quickstart/iris/iris-data.js";
import { trainIris } from "../../examples/quickstart/iris/train-iris.js";
import { relativeLinks } from "../docs/markdown.js";
import { exampleFolder, readExampleReadme } from "../support/example-readme.js";
import { repositoryRoot } from "../support/repository.js";

const examples = readdirSync(join(repositoryRoot, "examples"));

describe.each(examples)("the README of examples/%s", (name) => {
  const text = existsSync(join(exampleFolder(name), "README.md")) ? readExampleReadme(name) : "";

  it("says what the example shows, how to run it, what it prints and what to read", () => {
    expect(text.split("\n").filter((line) => line.startsWith("#") && !/^# \d/.test(line))).toEqual([
      expect.stringMatching(/^# \w/),
      "## Run",
      "## Read",
    ]);
    const [, introduction] = /^# .*\n\n([^#]+)\n\n## Run\n/.exec(text) ?? [];
    expect(introduction?.length).toBeGreaterThan(60);
    expect(text).toMatch(/^## Run\n[\s\S]*\bExpected output\b[\s\S]*^(?:```text|# 200 .*)$[\s\S]*^## Read$/m);
  });

  it("names commands that the example has", () => {
    const { scripts = {} } = JSON.parse(readFileSync(join(exampleFolder(name), "package.json"), "utf8"));
    const [, run] = /^## Run\n.*?^```sh\n(.*?)^```$/ms.exec(text)!;
    expect(run).toMatch(/^(?:\w+=\S+ )?npm start$/m);
    const named = [...text.matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, script]) => script!);
    // `npm run build` in the root is a script of the workspace.
    const known = ["install", "build", ...Object.keys(scripts)];
    expect(named.filter((script) => !known.includes(script))).toEqual([]);
    expect(scripts).toHaveProperty("start");
  });

  it("links to files that exist", () => {
    const missing = relativeLinks({ path: "", text }).filter(
      (target) => !existsSync(join(exampleFolder(name), target.replace(/^<(.*)>$/, "$1"))),
    );
    expect(missing).toEqual([]);
  });
});

const folder = new URL("../../examples/quickstart/iris/", import.meta.url);

const csvText = await readFile(new URL("iris.csv", folder), "utf8");

const modelBytes = new Uint8Array(await readFile(new URL("iris.onnx", folder)));

const flowers = parseIris(csvText);

async function classify(rows: readonly (readonly number[])[]) {
  const session = await InferenceSession.create(modelBytes);
  try {
    const measurements = new Tensor("float32", Float32Array.from(rows.flat()), [rows.length, 4]);
    const { probabilities, species } = await session.run({ measurements });
    return { probabilities: probabilities!, species: species! };
  } finally {
    await session.release();
  }
}

describe("the iris data", () => {
  it("has 50 flowers of each of the three species", () => {
    expect(flowers).toHaveLength(150);
    for (const species of irisSpecies.keys()) {
      expect(flowers.filter((flower) => flower.species === species)).toHaveLength(50);
    }
  });

  it("is Fisher's: with the two rows that some copies have wrong, and his means of setosa", () => {
    expect(flowers[34]?.measurements).toEqual([4.9, 3.1, 1.5, 0.2]);
    expect(flowers[37]?.measurements).toEqual([4.9, 3.6, 1.4, 0.1]);
    const setosa = flowers.filter((flower) => flower.species === 0);
    const means = [0, 1, 2, 3].map(
      (column) => setosa.reduce((sum, flower) => sum + flower.measurements[column]!, 0) / setosa.length,
    );
    expect(means.map((mean) => mean.toFixed(3))).toEqual(["5.006", "3.428", "1.462", "0.246"]);
  });

  it("is rejected with the line number of an unreadable line", () => {
    const header = "sepal_length,sepal_width,petal_length,petal_width,species";
    expect(() => parseIris("a,b\n")).toThrow("line 1");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,0.2,setosa\n5.1,3.5,1.4,setosa\n`)).toThrow("line 3");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,wide,setosa\n`)).toThrow("line 2");
    expect(() => parseIris(`${header}\n5.1,3.5,,0.2,setosa\n`)).toThrow("line 2");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,0.2,tulip\n`)).toThrow("line 2");
  });
});

describe("the iris model", () => {
  it("equals the result of the training script, byte for byte", () => {
    expect(Buffer.from(trainIris(csvText)).equals(modelBytes)).toBe(true);
  });

  it("classifies at least 97 of 100 flowers correctly", async () => {
    const { species } = await classify(flowers.map((flower) => flower.measurements));
    const right = flowers.filter((flower, row) => Number(species.data[row]) === flower.species);
    expect(right.length / flowers.length).toBeGreaterThanOrEqual(0.97);
  });

  it.each([1, 7, 150])("answers a batch of %i with a row per flower", async (batch) => {
    const { probabilities, species } = await classify(
      flowers.slice(-batch).map((flower) => flower.measurements),
    );
    expect([probabilities.type, probabilities.dims]).toEqual(["float32", [batch, 3]]);
    expect([species.type, species.dims]).toEqual(["int64", [batch, 1]]);
    for (let row = 0; row < batch; row++) {
      const chances = Array.from(probabilities.data.slice(3 * row, 3 * row + 3), Number);
      expect(chances[0]! + chances[1]! + chances[2]!).toBeCloseTo(1, 5);
      expect(Number(species.data[row])).toBe(chances.indexOf(Math.max(...chances)));
    }
  });
});

/** A model that returns its input. */
function identityModel(elemType: OnnxElementType): OnnxModel {
  return {
    name: "identity",
    opset: 17,
    inputs: [{ name: "x", elemType, dims: ["batch", 2] }],
    outputs: [{ name: "y", elemType, dims: ["batch", 2] }],
    nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
  };
}

/** A model that returns one constant and has no inputs. */
function constantModel(tensor: OnnxTensor, elemType: OnnxElementType): OnnxModel {
  return {
    name: "constant",
    opset: 17,
    inputs: [],
    outputs: [{ name: "y", elemType, dims: tensor.dims }],
    initializers: [tensor],
    nodes: [{ op: "Identity", inputs: [tensor.name], outputs: ["y"] }],
  };
}

async function run(model: OnnxModel, feeds: Record<string, Tensor> = {}): Promise<Tensor> {
  const session = await InferenceSession.create(onnxModel(model));
  try {
    return (await session.run(feeds)).y!;
  } finally {
    await session.release();
  }
}

describe("onnxModel", () => {
  it.each<[OnnxElementType, string]>([
    ["FLOAT", "float32"],
    ["FLOAT16", "float16"],
    ["DOUBLE", "float64"],
    ["INT8", "int8"],
    ["INT16", "int16"],
    ["INT32", "int32"],
    ["INT64", "int64"],
    ["UINT8", "uint8"],
    ["UINT16", "uint16"],
    ["UINT32", "uint32"],
    ["UINT64", "uint64"],
    ["BOOL", "bool"],
    ["STRING", "string"],
  ])("declares inputs and outputs of %s", async (elemType, type) => {
    const session = await InferenceSession.create(onnxModel(identityModel(elemType)));
    const shape = ["batch", 2];
    expect(session.inputMetadata).toEqual([{ name: "x", isTensor: true, type, shape }]);
    expect(session.outputMetadata).toEqual([{ name: "y", isTensor: true, type, shape }]);
    await session.release();
  });

  it("declares BFLOAT16, which ONNX Runtime reads and its Node binding rejects by its number", async () => {
    const created = InferenceSession.create(onnxModel(identityModel("BFLOAT16")));
    await expect(created).rejects.toThrow(`Unsupported data type: ${onnxElementTypes.BFLOAT16}`);
  });

  it.each<[OnnxElementType, OnnxTensor["data"], readonly unknown[]]>([
    ["FLOAT", Float32Array.of(1.5, -2), [1.5, -2]],
    ["DOUBLE", Float64Array.of(0.1, -2), [0.1, -2]],
    ["INT8", Int8Array.of(-128, 127), [-128, 127]],
    ["INT16", Int16Array.of(-32768, 1), [-32768, 1]],
    ["INT32", Int32Array.of(-(2 ** 31), 1), [-(2 ** 31), 1]],
    ["INT64", BigInt64Array.of(-(2n ** 63n), 1n), [-(2n ** 63n), 1n]],
    ["UINT8", Uint8Array.of(255, 0), [255, 0]],
    ["UINT16", Uint16Array.of(65535, 0), [65535, 0]],
    ["UINT32", Uint32Array.of(2 ** 32 - 1, 0), [2 ** 32 - 1, 0]],
    ["UINT64", BigUint64Array.of(2n ** 64n - 1n, 0n), [2n ** 64n - 1n, 0n]],
    ["BOOL", Uint8Array.of(1, 0), [1, 0]],
    ["STRING", ["Blüte", ""], ["Blüte", ""]],
  ])("stores constants of %s", async (elemType, data, expected) => {
    const y = await run(constantModel({ name: "c", dims: [2], elemType, data }, elemType));
    expect(y.dims).toEqual([2]);
    expect(Array.from<unknown>(y.data)).toEqual(expected);
  });

  it.each<[OnnxElementType, Uint16Array]>([
    ["FLOAT16", Uint16Array.of(0x3e00, 0xc000)],
    ["BFLOAT16", Uint16Array.of(0x3fc0, 0xc000)],
  ])("stores the bit patterns of %s constants", async (elemType, data) => {
    const y = await run({
      ...constantModel({ name: "c", dims: [2], elemType, data }, "FLOAT"),
      nodes: [
        { op: "Cast", inputs: ["c"], outputs: ["y"], attributes: { to: { int: onnxElementTypes.FLOAT } } },
      ],
    });
    expect(Array.from(y.data as Float32Array)).toEqual([1.5, -2]);
  });

  it("stores only the part of a buffer that a view covers, and scalars", async () => {
    const view = Float32Array.of(1, 2, 3, 4).subarray(2, 3);
    const y = await run(constantModel({ name: "c", dims: [], data: view }, "FLOAT"));
    expect(y.dims).toEqual([]);
    expect(Array.from(y.data as Float32Array)).toEqual([3]);
  });

  it.each<[string, OnnxModel["nodes"][number]["attributes"], readonly unknown[]]>([
    ["float", { value_float: { float: 0.5 } }, [0.5]],
    ["floats", { value_floats: { floats: [0.5, -1] } }, [0.5, -1]],
    ["int", { value_int: { int: -(2n ** 63n) } }, [-(2n ** 63n)]],
    ["ints", { value_ints: { ints: [-1, 2n ** 62n] } }, [-1n, 2n ** 62n]],
    ["string", { value_string: { string: "Blüte" } }, ["Blüte"]],
    ["strings", { value_strings: { strings: ["a", "b"] } }, ["a", "b"]],
    ["tensor", { value: { tensor: { name: "", dims: [1], data: Float32Array.of(7) } } }, [7]],
  ])("writes %s attributes", async (kind, attributes, expected) => {
    const elemType = kind.startsWith("string") ? "STRING" : kind.startsWith("int") ? "INT64" : "FLOAT";
    const y = await run({
      name: "attribute",
      opset: 17,
      inputs: [],
      outputs: [{ name: "y", elemType, dims: kind.endsWith("s") ? [2] : kind === "tensor" ? [1] : [] }],
      nodes: [{ op: "Constant", inputs: [], outputs: ["y"], attributes }],
    });
    expect(Array.from<unknown>(y.data)).toEqual(expected);
  });

  it("writes graph attributes", async () => {
    const branch = (name: string, value: number) => ({
      name,
      inputs: [],
      outputs: [{ name, elemType: "FLOAT" as const, dims: [] }],
      nodes: [{ op: "Constant", inputs: [], outputs: [name], attributes: { value_float: { float: value } } }],
    });
    const model: OnnxModel = {
      name: "choice",
      opset: 17,
      inputs: [{ name: "x", elemType: "BOOL", dims: [] }],
      outputs: [{ name: "y", elemType: "FLOAT", dims: [] }],
      nodes: [
        {
          op: "If",
          inputs: ["x"],
          outputs: ["y"],
          attributes: { then_branch: { graph: branch("one", 1) }, else_branch: { graph: branch("two", 2) } },
        },
      ],
    };
    const yes = await run(model, { x: new Tensor("bool", [true], []) });
    const no = await run(model, { x: new Tensor("bool", [false], []) });
    expect([yes.data[0], no.data[0]]).toEqual([1, 2]);
  });

  it("accepts operators of other domains", async () => {
    const y = await run({
      name: "gelu",
      opset: 17,
      domains: { "com.microsoft": 1 },
      inputs: [],
      outputs: [{ name: "y", elemType: "FLOAT", dims: [1] }],
      initializers: [{ name: "c", dims: [1], data: Float32Array.of(0) }],
      nodes: [{ op: "Gelu", domain: "com.microsoft", name: "gelu", inputs: ["c"], outputs: ["y"] }],
    });
    expect(y.data[0]).toBe(0);
  });

  it("rejects data that does not match the shape or the element type", () => {
    const data = Float32Array.of(1, 2);
    expect(() => onnxModel(constantModel({ name: "c", dims: [3], data }, "FLOAT"))).toThrow(
      'tensor "c": shape [3] has 3 elements, the data has 2',
    );
    expect(() =>
      onnxModel(constantModel({ name: "c", dims: [2], data, elemType: "INT32" }, "INT32")),
    ).toThrow('tensor "c": a Float32Array cannot hold INT32');
  });
});

const tutorial = join(repositoryRoot, "examples/tutorials/falcon");

const { services } = parse(readFileSync(join(tutorial, "compose.yaml"), "utf8"));

const { server, client } = services;

const dockerfile = readFileSync(join(repositoryRoot, "deploy/Dockerfile"), "utf8");

describe("the compose file of the falcon tutorial", () => {
  /** The keys of a service that compose knows, as far as such files use them. */
  const KEYS = new Set([
    ...["image", "build", "command", "entrypoint", "environment", "depends_on", "healthcheck", "ports"],
    ...["volumes", "read_only", "tmpfs", "shm_size", "stop_grace_period"],
  ]);

  it("has a server and a client, with keys of the format", () => {
    expect(Object.keys(services)).toEqual(["server", "client"]);
    for (const service of Object.values<object>(services)) {
      expect(Object.keys(service).filter((key) => !KEYS.has(key))).toEqual([]);
    }
  });

  it("builds the image of the project, which both services run", () => {
    const { context, dockerfile: file, args } = server.build;
    expect(existsSync(join(tutorial, context, file))).toBe(true);
    expect(resolve(tutorial, context)).toBe(resolve(repositoryRoot));
    for (const name of Object.keys(args)) expect(dockerfile).toMatch(new RegExp(`^ARG ${name}\\b`, "m"));
    expect(dockerfile).toMatch(new RegExp(`^FROM .* AS ${args.SOURCE}$`, "m"));
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, "packages/cli/package.json"), "utf8"));
    expect([server.image, client.image]).toEqual([`tritonjs:${version}`, `tritonjs:${version}`]);
  });

  it("mounts folders that exist, read only", () => {
    for (const volume of [...server.volumes, ...client.volumes]) {
      const [from, , mode] = volume.split(":");
      expect(existsSync(join(tutorial, from))).toBe(true);
      expect(mode).toBe("ro");
    }
  });

  it("starts the client when the model is ready, and gives the server time to stop", () => {
    expect(client.depends_on).toEqual({ server: { condition: "service_healthy" } });
    expect(client.environment.TRITON_URL).toBe("http://server:8000");
    const [command, ...args] = server.command;
    const { values, warnings } = readArguments(args, {});
    expect({ command, warnings, port: values["http-port"] }).toEqual({
      command: "serve",
      warnings: [],
      port: 8000,
    });
    expect(Number.parseInt(server.stop_grace_period, 10)).toBeGreaterThan(values["exit-timeout-secs"]);
  });
});
