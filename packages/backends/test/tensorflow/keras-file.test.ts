import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { strToU8, zipSync } from "fflate";
import * as hdf5 from "h5wasm";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openKerasModel } from "../../src/tensorflow/keras-file.js";

/* The layouts of the files are those that Keras 2.15 and Keras 3 wrote for published models. */

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tritonjs-keras-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

type Weights = Readonly<Record<string, readonly [shape: readonly number[], values: readonly number[]]>>;

/** Writes an HDF5 file, and returns its bytes. */
async function h5(
  weights: Weights,
  attributes: Readonly<Record<string, Readonly<Record<string, string | string[]>>>> = {},
): Promise<Uint8Array> {
  const { FS } = await hdf5.ready;
  const file = new hdf5.File("written.h5", "w");
  const groupOf = (path: readonly string[]) =>
    path.reduce<hdf5.Group>((group, key) => {
      if (!group.keys().includes(key)) group.create_group(key);
      return group.get(key) as hdf5.Group;
    }, file);
  for (const [path, [shape, values]] of Object.entries(weights)) {
    const keys = path.split("/");
    groupOf(keys.slice(0, -1)).create_dataset({
      name: keys.at(-1)!,
      data: Float32Array.from(values),
      shape: [...shape],
      dtype: "<f",
    });
  }
  for (const [path, values] of Object.entries(attributes)) {
    const group = path === "" ? file : groupOf(path.split("/"));
    for (const [name, value] of Object.entries(values)) group.create_attribute(name, value);
  }
  file.close();
  const bytes = FS.readFile("written.h5");
  FS.unlink("written.h5");
  return bytes;
}

const floats = { module: "keras", class_name: "DTypePolicy", config: { name: "float32" } };
const layer = (className: string, config: object, more: object = {}) => ({
  module: "keras.layers",
  class_name: className,
  config: { trainable: true, dtype: floats, ...config },
  registered_name: null,
  ...more,
});
const dense = (name: string, units: number, activation: unknown, more: object = {}) =>
  layer(
    "Dense",
    {
      name,
      units,
      activation,
      use_bias: true,
      kernel_initializer: {
        module: "keras.initializers",
        class_name: "GlorotUniform",
        config: { seed: null },
      },
    },
    more,
  );
const input = (name: string, shape: readonly (number | null)[]) =>
  layer("InputLayer", { name, batch_shape: [null, ...shape], sparse: false });
const sequential = (layers: readonly object[], more: object = {}) => ({
  module: "keras",
  class_name: "Sequential",
  config: { name: "sequential", dtype: floats, layers, ...more },
});

function writeKeras(name: string, config: object, weights: Uint8Array): string {
  const path = join(directory, name);
  const files = { "metadata.json": strToU8("{}"), "config.json": strToU8(JSON.stringify(config)) };
  writeFileSync(path, zipSync({ ...files, "model.weights.h5": weights }, { level: 0 }));
  return path;
}

async function answer(path: string, ...inputs: readonly tf.Tensor[]): Promise<number[]> {
  const model = await openKerasModel(tf, path);
  const output = model.predict(inputs.length === 1 ? inputs[0]! : [...inputs]) as tf.Tensor;
  return Array.from(await output.data());
}

const refusal = (path: string) => openKerasModel(tf, path).then(() => "opened", String);

const KERNELS: Weights = {
  "layers/dense/vars/0": [
    [2, 2],
    [1, 2, 3, 4],
  ],
  "layers/dense/vars/1": [[2], [0, -20]],
  "layers/batch_normalization/vars/0": [[2], [2, 1]],
  "layers/batch_normalization/vars/1": [[2], [1, 0]],
  "layers/batch_normalization/vars/2": [[2], [3, 0]],
  "layers/batch_normalization/vars/3": [[2], [4 - 1e-3, 1 - 1e-3]],
  "layers/dense_1/vars/0": [
    [2, 1],
    [1, 1],
  ],
  "layers/dense_1/vars/1": [[1], [0.5]],
  "layers/dropout/seed_generator/vars/0": [[2], [1, 2]],
};
const LAYERS = [
  input("x", [2]),
  dense("first", 2, { module: "builtins", class_name: "function", config: "relu" }),
  layer("BatchNormalization", { name: "norm", axis: [-1], epsilon: 1e-3, momentum: 0.99 }),
  layer("Dropout", { name: "drop", rate: 0.5, seed: null }),
  layer("RandomFlip", { name: "flip", mode: "horizontal" }),
  dense("last", 1, "linear"),
];
/** x [1, 2] gives relu [7, 0], normalized [5, 0], and in sum 5.5. */
const ANSWER = 5.5;

describe("a .keras file", () => {
  it("of Keras 3 answers as calculated by hand, without what only training needs", async () => {
    const path = writeKeras("m.keras", sequential(LAYERS), await h5(KERNELS));
    expect(await answer(path, tf.tensor2d([[1, 2]]))).toEqual([expect.closeTo(ANSWER, 5)]);
  });

  it("written on Windows has backslashes in its names", async () => {
    const names = Object.entries(KERNELS).map(([name, value]) => [name.replace("/", "\\"), value]);
    const path = writeKeras("m.keras", sequential(LAYERS), await h5(Object.fromEntries(names)));
    expect(await answer(path, tf.tensor2d([[1, 2]]))).toEqual([expect.closeTo(ANSWER, 5)]);
  });

  it("of Keras 2 counts layers with weights twice", async () => {
    const names = Object.entries(KERNELS).map(([name, value]) => [
      name.replace("layers/dense_1", "layers/dense_2").replace("layers/", "_layer_checkpoint_dependencies/"),
      value,
    ]);
    const path = writeKeras("m.keras", sequential(LAYERS), await h5(Object.fromEntries(names)));
    expect(await answer(path, tf.tensor2d([[1, 2]]))).toEqual([expect.closeTo(ANSWER, 5)]);
  });

  it("of the functional kind joins its inputs in the order of the arguments, with a model inside", async () => {
    const tensor = (name: string) => ({
      class_name: "__keras_tensor__",
      config: { keras_history: [name, 0, 0] },
    });
    const called = (name: string, args: unknown) => ({ name, inbound_nodes: [{ args: [args], kwargs: {} }] });
    const inner = {
      ...sequential([input("inner_x", [2]), dense("inner_dense", 1, "linear")], { name: "inner" }),
      ...called("inner", tensor("join")),
    };
    const config = {
      module: "keras.src.models.functional",
      class_name: "Functional",
      config: {
        name: "functional",
        layers: [
          { ...input("a", [1]), name: "a", inbound_nodes: [] },
          { ...input("b", [1]), name: "b", inbound_nodes: [] },
          layer("Concatenate", { name: "join", axis: -1 }, called("join", [tensor("b"), tensor("a")])),
          inner,
        ],
        input_layers: [
          ["a", 0, 0],
          ["b", 0, 0],
        ],
        output_layers: ["inner", 0, 0],
      },
    };
    const weights: Weights = {
      "layers/sequential/layers/dense/vars/0": [
        [2, 1],
        [1, 10],
      ],
      "layers/sequential/layers/dense/vars/1": [[1], [100]],
    };
    const path = writeKeras("m.keras", config, await h5(weights));
    expect(await answer(path, tf.tensor2d([[1]]), tf.tensor2d([[2]]))).toEqual([2 * 1 + 1 * 10 + 100]);
  });
});

const KERAS_2 = {
  class_name: "Sequential",
  config: {
    name: "sequential",
    layers: [
      {
        class_name: "LSTM",
        config: {
          name: "lstm",
          batch_input_shape: [null, 2, 1],
          units: 1,
          activation: "tanh",
          recurrent_activation: "sigmoid",
          use_bias: true,
          unit_forget_bias: true,
        },
      },
      { class_name: "Dense", config: { name: "dense", units: 1, activation: "linear", use_bias: true } },
    ],
  },
};

async function writeH5(name: string, config: object | undefined, weights: Weights = LSTM): Promise<string> {
  const path = join(directory, name);
  const attributes: Record<string, Record<string, string | string[]>> = {
    "": config === undefined ? {} : { model_config: JSON.stringify(config), keras_version: "2.15.0" },
    // Keras cuts lists that are too long for an attribute.
    "model_weights/lstm": { weight_names0: ["k:0", "r:0"], weight_names1: ["b:0"] },
    "model_weights/dense": { weight_names: ["dense/kernel:0", "dense/bias:0"] },
  };
  writeFileSync(path, await h5(weights, attributes));
  return path;
}

const LSTM: Weights = {
  "model_weights/lstm/k:0": [
    [1, 4],
    [0.1, 0.2, 0.3, 0.4],
  ],
  "model_weights/lstm/r:0": [
    [1, 4],
    [0.5, -0.6, 0.7, -0.8],
  ],
  "model_weights/lstm/b:0": [[4], [0.01, 1.02, 0.03, 0.04]],
  "model_weights/dense/dense/kernel:0": [[1, 1], [2]],
  "model_weights/dense/dense/bias:0": [[1], [0.25]],
};

describe("an .h5 file", () => {
  it("answers as calculated by hand, with the names of its weights in parts", async () => {
    const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
    let [hidden, cell] = [0, 0];
    for (const x of [0.5, -1]) {
      const gate = (i: number) =>
        0.1 * (i + 1) * x + [0.5, -0.6, 0.7, -0.8][i]! * hidden + [0.01, 1.02, 0.03, 0.04][i]!;
      cell = sigmoid(gate(1)) * cell + sigmoid(gate(0)) * Math.tanh(gate(2));
      hidden = sigmoid(gate(3)) * Math.tanh(cell);
    }
    const path = await writeH5("m.h5", KERAS_2);
    expect(await answer(path, tf.tensor3d([[[0.5], [-1]]]))).toEqual([expect.closeTo(2 * hidden + 0.25, 5)]);
  });

  it("is served from a repository by the name of its file alone", async () => {
    mkdirSync(join(directory, "m/1"), { recursive: true });
    await writeH5("m/1/model.h5", KERAS_2);
    const triton = new Triton({ logInfo: false, extensions: [repository({ modelRepository: directory })] });
    await triton.ready();
    expect(serviceOf(triton).modelConfig("m", "")).toMatchObject({
      platform: "tensorflow_tfjs",
      input: [{ name: "lstm_input", dims: [2, 1] }],
      output: [{ name: "dense", dims: [1] }],
    });
    await triton.close();
  });
});

describe("a GRU whose reset gate comes after the product with the state", () => {
  const [kernel, recurrent] = [
    [0.1, 0.2, 0.3],
    [0.5, -0.6, 0.7],
  ] as const;
  const [first, second] = [
    [0.01, 0.02, 0.03],
    [0.3, -0.2, 0.4],
  ] as const;
  /** The state after each step. */
  const states = (steps: readonly number[]) => {
    const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
    let state = 0;
    return steps.map((x) => {
      const given = kernel.map((weight, i) => weight * x + first[i]!);
      const kept = recurrent.map((weight, i) => weight * state + second[i]!);
      const [update, reset] = [sigmoid(given[0]! + kept[0]!), sigmoid(given[1]! + kept[1]!)];
      state = update * state + (1 - update) * Math.tanh(given[2]! + reset * kept[2]!);
      return state;
    });
  };
  const options = {
    units: 1,
    activation: "tanh",
    recurrent_activation: "sigmoid",
    use_bias: true,
    reset_after: true,
    recurrent_initializer: { class_name: "Orthogonal", config: { gain: 1, seed: null } },
  };
  const weights = (path: string): Weights => ({
    [`${path}/0`]: [[1, 3], kernel],
    [`${path}/1`]: [[1, 3], recurrent],
    [`${path}/2`]: [
      [2, 3],
      [...first, ...second],
    ],
  });
  const steps = [0.5, -1, 2];
  const x = () => tf.tensor3d([steps.map((step) => [step])]);

  it("answers as calculated by hand, from an .h5 file", async () => {
    const config = {
      class_name: "Sequential",
      config: {
        name: "sequential",
        layers: [{ class_name: "GRU", config: { name: "gru", batch_input_shape: [null, 3, 1], ...options } }],
      },
    };
    const path = join(directory, "m.h5");
    const attributes = {
      "": { model_config: JSON.stringify(config) },
      "model_weights/gru": { weight_names: ["0", "1", "2"] },
    };
    writeFileSync(path, await h5(weights("model_weights/gru"), attributes));
    expect(await answer(path, x())).toEqual([expect.closeTo(states(steps).at(-1)!, 5)]);
  });

  it("answers as calculated by hand in both directions, from a .keras file", async () => {
    const gru = layer("GRU", { name: "gru", ...options, return_sequences: true });
    const both = layer("Bidirectional", { name: "both", merge_mode: "concat", layer: gru });
    const path = writeKeras(
      "m.keras",
      sequential([input("x", [3, 1]), both]),
      await h5({
        ...weights("layers/bidirectional/forward_layer/cell/vars"),
        ...weights("layers/bidirectional/backward_layer/cell/vars"),
      }),
    );
    const [forward, backward] = [states(steps), states(steps.toReversed()).toReversed()];
    const expected = forward.flatMap((one, i) => [one, backward[i]!]);
    expect(await answer(path, x())).toEqual(expected.map((one) => expect.closeTo(one, 5)));
  });

  it("answers as calculated by hand as the cell of an RNN, and without biases", async () => {
    const cell = layer("GRUCell", { name: "cell", ...options });
    const rnn = layer("RNN", { name: "rnn", cell, return_sequences: false });
    const path = writeKeras(
      "m.keras",
      sequential([input("x", [3, 1]), rnn]),
      await h5(weights("layers/rnn/cell/vars")),
    );
    expect(await answer(path, x())).toEqual([expect.closeTo(states(steps).at(-1)!, 5)]);
    const { "layers/gru/cell/vars/2": _, ...plain } = weights("layers/gru/cell/vars");
    const bare = layer("GRU", { name: "gru", ...options, use_bias: false });
    const other = writeKeras("n.keras", sequential([input("x", [3, 1]), bare]), await h5(plain));
    expect(await answer(other, x())).toHaveLength(1);
  });
});

describe("is refused by name:", () => {
  it("weights without a model", async () => {
    expect(await refusal(await writeH5("m.h5", undefined))).toMatch(
      /m\.h5': expected a whole model, got weights without a configuration; save it with model\.save\(\)$/,
    );
  });

  it("a layer that TensorFlow.js lacks", async () => {
    const path = writeKeras(
      "m.keras",
      sequential([input("x", [2]), layer("Lambda", { name: "f" })]),
      await h5({}),
    );
    expect(await refusal(path)).toMatch(/m\.keras': TensorFlow\.js has no layer 'Lambda'$/);
  });

  it("weights of another shape", async () => {
    const path = await writeH5("m.h5", KERAS_2, { ...LSTM, "model_weights/lstm/b:0": [[3], [1, 2, 3]] });
    expect(await refusal(path)).toMatch(
      /weights of layer 'lstm': expected the shapes \[\[1,4\],\[1,4\],\[4\]\], got \[\[1,4\],\[1,4\],\[3\]\]$/,
    );
  });

  it("weights that are missing", async () => {
    const path = writeKeras("m.keras", sequential(LAYERS), await h5({}));
    expect(await refusal(path)).toMatch(/layer 'first': expected the shapes \[\[2,2\],\[2\]\], got \[\]$/);
  });

  it("a zip file without a configuration", async () => {
    const path = join(directory, "m.keras");
    writeFileSync(path, zipSync({ "model.weights.h5": await h5({}) }));
    expect(await refusal(path)).toMatch(/expected 'config\.json' and 'model\.weights\.h5' in its zip file/);
  });

  it.each([0, 1, 2, 3])("a file that is cut or is another, case %i", async (which) => {
    const whole = await h5(KERNELS);
    const zipped = zipSync({ "config.json": strToU8("{}"), "model.weights.h5": whole }, { level: 0 });
    const bytes = [whole.subarray(0, 500), zipped.subarray(0, 700), strToU8("no model"), new Uint8Array(0)][
      which
    ]!;
    const path = join(directory, "m.h5");
    writeFileSync(path, bytes);
    expect(await refusal(path)).toMatch(/^TritonError: cannot load the Keras model '.*m\.h5': /);
  });
});
