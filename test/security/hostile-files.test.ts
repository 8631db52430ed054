import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceServerClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

type Bytes = Uint8Array | string;

/** A model of a repository: its configuration besides the name, and its files by their paths. */
interface Hostile {
  readonly config: string;
  readonly files: Readonly<Record<string, Bytes>>;
  /** What the error says besides the name of the model. */
  readonly says: RegExp;
}

const joined = (...parts: readonly (Bytes | readonly Bytes[])[]): Buffer =>
  Buffer.concat(parts.flat().map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
const many = (count: number, text: string): Buffer => Buffer.alloc(count * text.length, text, "latin1");
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

function varint(value: number | bigint): Buffer {
  if (value < 128) return Buffer.of(Number(value));
  const bytes: number[] = [];
  for (let left = BigInt(value); ; left >>= 7n) {
    if (left < 128n) return Buffer.from([...bytes, Number(left)]);
    bytes.push(Number(left & 127n) | 128);
  }
}

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const int = (number: number, value: number | bigint): Buffer => joined(varint(number * 8), varint(value));
function field(number: number, ...content: readonly (Bytes | readonly Bytes[])[]): Buffer {
  const bytes = joined(...content);
  return joined(varint(number * 8 + 2), varint(bytes.length), bytes);
}

const onnx = (graph: Bytes, ...further: readonly Bytes[]) => ({
  config: 'backend: "onnxruntime"',
  files: { "1/model.onnx": joined(int(1, 8), field(7, graph), field(8, int(2, 17)), further) },
});
const value = (name: string, dims = 1) =>
  joined(
    field(1, name),
    field(
      2,
      field(
        1,
        int(1, 1),
        field(
          2,
          times(dims, () => field(1, int(1, 1))),
        ),
      ),
    ),
  );
const identity = joined(
  field(1, field(1, "x"), field(2, "y"), field(4, "Identity")),
  field(11, value("x")),
  field(12, value("y")),
);

function trees(type: string, file: string, content: Bytes) {
  const parameter = (key: string, text: string) =>
    `parameters { key: "${key}" value { string_value: "${text}" } }`;
  const config = `backend: "fil" max_batch_size: 8 ${parameter("model_type", type)} ${parameter("is_classifier", "false")}
    input [{ name: "input__0" data_type: TYPE_FP32 dims: 2 }]
    output [{ name: "output__0" data_type: TYPE_FP32 dims: 1 }]`;
  return { config, files: { [`1/${file}`]: content } };
}

const json = (text: Bytes) => trees("xgboost_json", "xgboost.json", text);

/** An XGBoost document of one tree with two leaves, or with other fields. */
function document(parameters: object, tree: object, treeParameters: object = {}): string {
  const trees = [
    {
      tree_param: { num_nodes: "3", size_leaf_vector: "1", ...treeParameters },
      left_children: [1, -1, -1],
      right_children: [2, -1, -1],
      split_indices: [0, 0, 0],
      split_conditions: [0.5, 1, 2],
      default_left: [0, 0, 0],
      base_weights: [0, 0, 0],
      ...tree,
    },
  ];
  const learner_model_param = { base_score: "0.5", num_class: "0", num_feature: "2", ...parameters };
  const gradient_booster = { name: "gbtree", model: { tree_info: [0], trees } };
  return JSON.stringify({
    learner: { learner_model_param, gradient_booster, objective: { name: "binary:logistic" } },
  });
}

function sharedCategories(nodes: number): object {
  const left = times(nodes, (i) => (2 * i + 1 < nodes ? 2 * i + 1 : -1));
  const splits = left.flatMap((child, i) => (child < 0 ? [] : [i]));
  const zeros = times(nodes, () => 0);
  return {
    left_children: left,
    right_children: left.map((child) => (child < 0 ? -1 : child + 1)),
    split_indices: zeros,
    split_conditions: zeros,
    default_left: zeros,
    split_type: left.map((child) => (child < 0 ? 0 : 1)),
    categories_nodes: splits,
    categories_segments: splits.map(() => 0),
    categories_sizes: splits.map(() => nodes),
    categories: times(nodes, () => 1),
  };
}

const lightgbm = (tree: string) =>
  trees(
    "lightgbm",
    "model.txt",
    `tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=1\nobjective=regression\n\nTree=0\n${tree}\nend of trees\n`,
  );

const graph = (...nodes: readonly (Bytes | readonly Bytes[])[]) => ({
  config: 'backend: "tensorflow"',
  files: { "1/model.graphdef": joined(...nodes) },
});
const node = (
  name: string,
  op: string,
  inputs: readonly string[],
  ...attributes: readonly [string, Bytes][]
) =>
  joined(
    field(1, name),
    field(2, op),
    inputs.map((input) => field(3, input)),
    attributes.map(([key, given]) => field(5, field(1, key), field(2, given))),
  );
const shape = (...dims: readonly number[]) => dims.map((dim) => field(2, int(1, dim)));
const placeholder = (name: string) =>
  field(1, node(name, "Placeholder", [], ["dtype", int(6, 1)], ["shape", field(7, shape(1))]));
const calls = (name: string, called: string, input: string) =>
  node(name, "PartitionedCall", [input], ["f", field(10, field(1, called))]);
const made = (name: string, result: string, ...nodes: readonly Bytes[]) =>
  field(
    1,
    field(1, field(1, name), field(2, field(1, "a")), field(3, field(1, "r"))),
    nodes.map((one) => field(3, one)),
    field(4, field(1, "r"), field(2, result)),
  );
const constant = (...content: readonly (Bytes | readonly Bytes[])[]) =>
  joined(
    placeholder("x"),
    field(1, node("c", "Const", [], ["value", field(8, int(1, 1), ...content)])),
    field(1, node("y", "Add", ["x", "c"])),
  );

const tfjs = (text: Bytes) => ({ config: 'backend: "tensorflow"', files: { "1/model.json": text } });
const input = (name: string) => `input { name: "${name}" data_type: TYPE_FP32 dims: 1 }`;
const output = (name: string, further = "") =>
  `output { name: "${name}" data_type: TYPE_FP32 dims: 1 ${further}}`;
const configured = (config: string, files: Readonly<Record<string, Bytes>> = {}) => ({
  config: `backend: "onnxruntime" ${config}`,
  files: { ...onnx(identity).files, ...files },
});

const FILES: Readonly<Record<string, Hostile>> = {
  onnx_tensors: {
    ...onnx(joined(identity, many(2 ** 20 + 1, "\x2a\x00"))),
    says: /at most 1048576 parts of a kind/,
  },
  onnx_inputs: {
    ...onnx(joined(times(8_200, (i) => field(11, value(`i${i}`))))),
    says: /at most 8192 inputs/,
  },
  onnx_dims: {
    ...onnx(joined(identity, field(11, value("z", 2_000)))),
    says: /at most 1024 dimensions, got 2000/,
  },
  onnx_name: {
    ...onnx(joined(identity, field(11, value("n".repeat(2 ** 22 + 1))))),
    says: /a text of at most 4194304 bytes/,
  },
  onnx_files: {
    ...onnx(
      joined(
        identity,
        times(16_400, (i) => field(5, field(13, field(1, "location"), field(2, `w${i}`)), int(14, 1))),
      ),
    ),
    says: /at most 16384 files of external data/,
  },
  json_objects: { ...json(joined("[", many(12_000_000, "{},"), "{}]")), says: /values that take at most/ },
  json_levels: { ...json(many(2_000_000, "[")), says: /at most 256 levels of JSON/ },
  json_spaces: { ...json(joined("[", many(1_000_000, " "), "x")), says: /expected JSON/ },
  json_classes: {
    ...json(document({ num_class: 2 ** 40 }, {}, { size_leaf_vector: 2 ** 40 })),
    says: /size_leaf_vector: expected at most 3/,
  },
  json_categories: {
    ...json(document({}, sharedCategories(2_001), { num_nodes: 2_001 })),
    says: /each of one node/,
  },
  // Each of the objects and the array fits by itself.
  ubj_objects: {
    ...trees(
      "xgboost_ubj",
      "xgboost.ubj",
      joined("{U\x01a[", many(600_000, "{}"), "[#l", int32(64_000_000), many(64_000_000, "x")),
    ),
    says: /values that take at most/,
  },
  lightgbm_digits: {
    ...lightgbm(`num_leaves=1\nleaf_value=${"1".repeat(1_000_000)}x`),
    says: /expected a number/,
  },
  lightgbm_words: {
    ...lightgbm(
      "num_leaves=3\nleaf_value=1 1 1\nnum_cat=1\nsplit_feature=0 0\nthreshold=0 0\ndecision_type=1 1\n" +
        "left_child=-1 -2\nright_child=1 -3\ncat_boundaries=0 2\ncat_threshold=1 1",
    ),
    says: /each of one node/,
  },
  graph_recursion: {
    ...graph(
      placeholder("x"),
      field(1, calls("y", "f", "x")),
      field(2, made("f", "c:r:0", calls("c", "f", "a"))),
    ),
    says: /at most 64 calls of functions within each other/,
  },
  graph_doubling: {
    ...graph(
      placeholder("x"),
      field(1, calls("y", "f40", "x")),
      field(
        2,
        made("f0", "z:r:0", node("z", "Relu", ["a"]), ...times(2 ** 15, () => joined(field(1, "n")))),
        times(40, (i) => made(`f${i + 1}`, "d:r:0", calls("c", `f${i}`, "a"), calls("d", `f${i}`, "c:r:0"))),
      ),
    ),
    says: /at most 2097152 nodes of all calls/,
  },
  graph_circle: {
    ...graph(
      placeholder("x"),
      field(1, node("a", "Identity", ["b"])),
      field(1, node("b", "Identity", ["a"])),
      field(1, node("y", "Add", ["x", "a"])),
    ),
    says: /passes on itself/,
  },
  graph_constant: {
    ...graph(constant(field(2, shape(2 ** 40)), field(5, many(1, "\0\0\0\0")))),
    says: /does not list/,
  },
  // The nodes fit by themselves, and the numbers too.
  graph_messages: {
    ...graph(many(600_000, "\x0a\x00"), constant(field(2, shape(1)), field(7, many(64_000_000, "\x01")))),
    says: /values that take at most/,
  },
  tfjs_levels: { ...tfjs(`{"modelTopology":${"[".repeat(300)}`), says: /at most 256 levels of JSON/ },
  tfjs_types: {
    ...tfjs('{"modelTopology":{"node":7},"format":"graph-model"}'),
    says: /cannot read the TensorFlow model/,
  },
  config_inputs: { ...configured(times(8_200, (i) => input(`i${i}`)).join("\n")), says: /failed to poll/ },
  config_groups: {
    ...configured("instance_group { count: 9000 kind: KIND_CPU }".repeat(2)),
    says: /at most 16384 instances, got 18000/,
  },
  config_warmup: {
    ...configured(
      `${input("x")} ${output("y")} model_warmup { name: "w" batch_size: 4000000000
        inputs { key: "x" value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }`,
    ),
    says: /a batch_size of at most 16384, got 4000000000/,
  },
  config_labels: {
    ...configured(`${input("x")} ${output("y", 'label_filename: "labels.txt"')}`, {
      "labels.txt": many(2 ** 20 + 1, "\n"),
    }),
    says: /at most 1048576 lines/,
  },
};

let triton: Triton;
let client: InferenceServerClient;
beforeAll(async () => {
  const modelRepository = mkdtempSync(join(tmpdir(), "hostile-files-"));
  const write = (model: string, { config, files }: Omit<Hostile, "says">) => {
    mkdirSync(join(modelRepository, model, "1"), { recursive: true });
    writeFileSync(join(modelRepository, model, "config.pbtxt"), `name: "${model}" ${config}`);
    for (const [path, content] of Object.entries(files))
      writeFileSync(join(modelRepository, model, path), content);
  };
  for (const [model, hostile] of Object.entries(FILES)) write(model, hostile);
  triton = new Triton({ extensions: [repository({ modelRepository, modelControlMode: "explicit" })] });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  client = new InferenceServerClient(addresses.http!.url, { accessToken: serviceOf(triton).accessToken! });
  return () => rmSync(modelRepository, { recursive: true });
});
afterAll(() => triton.close());

describe("a hostile file of a repository", () => {
  it.each(Object.entries(FILES))("is refused with its name: %s", async (model, { says }) => {
    const error = await client.loadModel(model).then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    expect(error?.message).toContain(model);
    expect(error?.message).toMatch(says);
    expect(await client.isServerLive()).toBe(true);
  });

  it("is read in a thread beside health probes", async () => {
    const events: string[] = [];
    const loaded = client.loadModel("json_objects").catch(() => events.push("refused"));
    for (let probe = 0; probe < 3; probe++) {
      expect(await client.isServerLive()).toBe(true);
      events.push("live");
    }
    await loaded;
    expect(events).toEqual(["live", "live", "live", "refused"]);
  });
});
