import { readFile } from "node:fs/promises";
import type { LayersModel } from "@tensorflow/tfjs";
import { assertJsonFits, errorFor, TritonError } from "@tritonjs/protocol";
import { RESET_AFTER_CELL, RESET_AFTER_GRU, registerResetAfterGru } from "./reset-after-gru.js";
import type { Tf } from "./tensorflow-runtime.js";

/*
 * Keras writes a model as one HDF5 file (`.h5`, Keras 1 to 3), or as a zip file with its configuration and an HDF5 file of
 * its weights (`.keras`, Keras 2.12 and newer). TensorFlow.js has the layers of Keras 2: configurations of Keras 3 are
 * rewritten in its words, and the weights go into its layers in their order.
 */

/** The part of `h5wasm` that is used. */
interface Hdf5 {
  readonly ready: Promise<{
    readonly FS: { writeFile(name: string, bytes: Uint8Array): void; unlink(name: string): void };
    activate_throwing_error_handler?(): void;
  }>;
  readonly File: new (name: string, mode: "r") => Group & { close(): void };
}

interface Group {
  readonly attrs: Readonly<Record<string, { readonly value: unknown }>>;
  keys(): string[];
  get(path: string): Group | Dataset | null;
}

interface Dataset {
  readonly shape: readonly number[];
  readonly value: unknown;
}

/** An array of weights. */
interface Weight {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

type Json = Readonly<Record<string, unknown>>;

/** A layer of TensorFlow.js; a model inside a model is one, too, and has layers of its own. */
interface Layer {
  readonly name: string;
  readonly layers?: readonly Layer[];
  readonly weights: readonly unknown[];
  getClassName(): string;
  getWeights(): readonly { readonly shape: readonly number[] }[];
  setWeights(weights: unknown[]): void;
}

/**
 * Opens a Keras file as a model of TensorFlow.js. It needs the package `h5wasm`, and `fflate` for `.keras`.
 *
 * @throws TritonError UNAVAILABLE when a package is not installed, INVALID_ARG for a file that is not a Keras model, for
 * weights alone, and for layers and activations that TensorFlow.js lacks
 */
export async function openKerasModel(tf: Tf, path: string): Promise<LayersModel> {
  const bytes = await readFile(path);
  // Zip files begin with "PK", HDF5 files with "\x89HDF".
  const archive = bytes[0] === 0x50 && bytes[1] === 0x4b ? await unzip(path, bytes) : undefined;
  const hdf5 = await needed<Hdf5>("h5wasm", path);
  const { FS, activate_throwing_error_handler: throwErrors } = await hdf5.ready;
  // Otherwise HDF5 writes its errors to stderr.
  throwErrors?.();
  FS.writeFile(SCRATCH, archive?.weights ?? bytes);
  const file = opened(hdf5, path);
  try {
    const config = archive?.config ?? textOf(file.attrs.model_config?.value);
    if (config === undefined)
      throw invalid(
        path,
        "expected a whole model, got weights without a configuration; save it with model.save()",
      );
    assertJsonFits(config, `the configuration of the Keras model '${path}'`);
    const modelTopology = layersOf(JSON.parse(config) as Json, path);
    registerResetAfterGru(tf);
    const model = await tf
      .loadLayersModel({ load: async () => ({ modelTopology }) })
      .catch((cause) => Promise.reject(unsupported(path, cause)));
    const layers = (model as unknown as { readonly layers: readonly Layer[] }).layers;
    const root = (file.get("model_weights") ?? file) as Group;
    if (archive === undefined) fillByName(tf, layers, root, path);
    else fillByClass(tf, layers, entriesOf(root), path);
    return model;
  } finally {
    file.close();
    FS.unlink(SCRATCH);
  }
}

/** In the memory of `h5wasm`, which has no files of the machine. */
const SCRATCH = "model.h5";

async function needed<T>(name: string, path: string): Promise<T> {
  try {
    // `importPeer` asks `require`, which finds no package that is only for `import`.
    return (await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name)) as T;
  } catch (cause) {
    const text = `cannot read the Keras model '${path}' without the package '${name}': install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
  }
}

function invalid(path: string, why: string, cause?: unknown): TritonError {
  return errorFor("INVALID_MODEL", `cannot load the Keras model '${path}': ${why}`, { cause });
}

/** The error for a layer, an activation or an option of one that TensorFlow.js lacks. */
function unsupported(path: string, cause: unknown): TritonError {
  const [first] = TritonError.from(cause).message.split("\n");
  const [, kind, name] = /^Unknown (\w+): ([^\s.]+)/.exec(first!) ?? [];
  const why = kind === undefined ? first : `TensorFlow.js has no ${kind} '${name}'`;
  return errorFor("MODEL_NOT_SUPPORTED", `cannot load the Keras model '${path}': ${why}`, { cause });
}

function opened(hdf5: Hdf5, path: string): Group & { close(): void } {
  try {
    const file = new hdf5.File(SCRATCH, "r");
    // A file that cannot be opened throws when it is read.
    file.keys();
    return file;
  } catch (cause) {
    throw invalid(path, "expected an HDF5 file or a zip file of Keras, got another or a damaged one", cause);
  }
}

/** Times that a file of an archive may be longer than its part of the archive: Keras stores weights as they are. */
const MOST_RATIO = 20;

/** Bytes of a file that may have any ratio. */
const SMALL_FILE = 2 ** 24;

interface ZippedFile {
  readonly name: string;
  readonly size: number;
  readonly originalSize: number;
}

async function unzip(path: string, bytes: Uint8Array): Promise<{ config: string; weights: Uint8Array }> {
  const { unzipSync } = await needed<{
    unzipSync(data: Uint8Array, options: { filter(file: ZippedFile): boolean }): Record<string, Uint8Array>;
  }>("fflate", path);
  let files: Record<string, Uint8Array>;
  try {
    files = unzipSync(bytes, {
      filter: ({ name, size, originalSize }) => {
        if (name !== "config.json" && name !== "model.weights.h5") return false;
        if (originalSize > SMALL_FILE + MOST_RATIO * size || size > bytes.byteLength)
          throw invalid(path, `'${name}' in its zip file: expected at most ${MOST_RATIO} times its bytes`);
        return true;
      },
    });
  } catch (cause) {
    if (TritonError.is(cause)) throw cause;
    throw invalid(path, "its zip file is damaged", cause);
  }
  const { "config.json": config, "model.weights.h5": weights } = files;
  if (config === undefined || weights === undefined) {
    const missing = config === undefined ? "config.json" : "model.weights.h5";
    throw invalid(
      path,
      `expected 'config.json' and 'model.weights.h5' in its zip file, '${missing}' is missing`,
    );
  }
  return { config: new TextDecoder().decode(config), weights };
}

function textOf(value: unknown): string | undefined {
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  return typeof value === "string" ? value : undefined;
}

/** Training changes these layers' inputs at random; a model that serves passes them on as they are. */
const ONLY_IN_TRAINING =
  /^(Random(Flip|Rotation|Zoom|Contrast|Translation|Brightness|Hue|Saturation|Shear|Erasing)|AugMix|MixUp|CutMix|SpatialDropout[123]D|ActivityRegularization)$/;

/** Names of Keras 3 for activations that TensorFlow.js knows by another name. */
const ACTIVATIONS: Readonly<Record<string, string>> = { silu: "swish" };

/** Rewrites a configuration in the words of Keras 2, which TensorFlow.js reads. */
function layersOf(config: Json, path: string): Json {
  const rewritten = rewrite(config, path) as { class_name?: unknown; config?: unknown };
  if (typeof rewritten.class_name !== "string" || rewritten.config === undefined)
    throw invalid(path, "its configuration has no class_name and config");
  return rewritten as Json;
}

/** @param counted models among the layers around, whose calls TensorFlow.js counts from 1 on */
function rewrite(value: unknown, path: string, counted: ReadonlySet<string> = NONE): unknown {
  if (Array.isArray(value)) return value.map((one) => rewrite(one, path, counted));
  if (typeof value !== "object" || value === null) return value;
  const { class_name: className, config, name, inbound_nodes: inbound } = value as Json;
  if (typeof className !== "string" || typeof config !== "object" || config === null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, rewrite(one, path, counted)]));
  }
  const layer = config as Json;
  if (/Policy$/.test(className)) return policyType(layer.name);
  const isServed = !ONLY_IN_TRAINING.test(className);
  const { name: own, batch_input_shape: shape } = layer;
  const passing = {
    name: own,
    activation: "linear",
    ...(shape !== undefined && { batch_input_shape: shape }),
  };
  return {
    class_name: isServed ? servedClass(className, layer) : "Activation",
    config: !isServed
      ? passing
      : Array.isArray(layer)
        ? rewrite(layer, path)
        : rewriteConfig(layer, className, path),
    ...(name !== undefined && { name }),
    ...(inbound !== undefined && { inbound_nodes: nodesOf(value as Json, path, counted) }),
  };
}

const NONE: ReadonlySet<string> = new Set();

function servedClass(className: string, { reset_after: isAfter }: Json): string {
  if (isAfter !== true) return className;
  return className === "GRU" ? RESET_AFTER_GRU : className === "GRUCell" ? RESET_AFTER_CELL : className;
}

/** Computes in floats, as TensorFlow.js does, also where Keras computes in half floats. */
function policyType(name: unknown): string {
  return typeof name === "string" && !/float16$/.test(name) ? name : "float32";
}

function rewriteConfig(config: Json, className: string, path: string): Json {
  const rewritten: Record<string, unknown> = {};
  const counted = countedFromOne(config.layers);
  for (const [key, value] of Object.entries(config)) {
    // Weights follow, so an initializer would only cost time.
    if (key.endsWith("_initializer")) rewritten[key] = { class_name: "Zeros", config: {} };
    else if (key === "batch_shape") rewritten.batch_input_shape = value;
    else if (key === "input_layers" || key === "output_layers") rewritten[key] = listed(value, counted);
    else if (/activation$/.test(key)) rewritten[key] = activationOf(value, path);
    else if (key === "axis" && Array.isArray(value) && value.length === 1) rewritten[key] = value[0];
    else if (key === "dtype")
      rewritten[key] = typeof value === "string" ? policyType(value) : rewrite(value, path);
    else rewritten[key] = rewrite(value, path, counted);
  }
  if (typeof config.groups === "number" && config.groups > 1) {
    const text = `layer '${String(config.name)}': TensorFlow.js has no convolution in ${config.groups} groups`;
    throw errorFor("MODEL_NOT_SUPPORTED", `cannot load the Keras model '${path}': ${text}`);
  }
  if (className === "Sequential") giveShape(rewritten, config.build_input_shape);
  return rewritten;
}

/** Without an input layer, Keras 3 stores the shape of the inputs with the model. */
function giveShape(model: Record<string, unknown>, shape: unknown): void {
  const [first] = (model.layers ?? []) as readonly { readonly config: Record<string, unknown> }[];
  if (Array.isArray(shape) && first !== undefined) first.config.batch_input_shape ??= shape;
}

/** Names of the models that Keras 3 has as layers and whose calls it counts from 0 on, as it does those of layers. */
function countedFromOne(layers: unknown): ReadonlySet<string> {
  if (!Array.isArray(layers)) return NONE;
  const isNew = layers.some(({ inbound_nodes: nodes }: { inbound_nodes?: readonly Json[] }) =>
    nodes?.some(({ args }) => args !== undefined),
  );
  const models = layers.filter(({ class_name: className }: Json) => className === "Sequential");
  return isNew ? new Set(models.map(({ config }: { config: { name: string } }) => config.name)) : NONE;
}

type Reference = readonly [layer: string, node: number, tensor: number];

/** A single input is written without the list around it. */
function listed(value: unknown, counted: ReadonlySet<string>): unknown {
  if (!Array.isArray(value)) return value;
  const references = (typeof value[0] === "string" ? [value] : value) as readonly Reference[];
  return references.map((one) => referenced(one, counted));
}

function referenced([layer, node, tensor]: Reference, counted: ReadonlySet<string>): Reference {
  return [layer, counted.has(layer) ? node + 1 : node, tensor];
}

function activationOf(value: unknown, path: string): unknown {
  // A function of Keras is written as an object with its name.
  const { class_name: className, config } = (value ?? {}) as { class_name?: unknown; config?: unknown };
  const name = className === "function" ? config : value;
  return typeof name === "string" ? (ACTIVATIONS[name] ?? name) : rewrite(name, path);
}

interface KerasTensor {
  readonly class_name: "__keras_tensor__";
  readonly config: { readonly keras_history: Reference };
}

/** Nodes of a layer: the layers whose outputs it takes, one list for each call. Keras 3 has the arguments of each call. */
function nodesOf({ inbound_nodes: nodes, name }: Json, path: string, counted: ReadonlySet<string>): unknown {
  if (!Array.isArray(nodes)) return nodes;
  return nodes.map((node: unknown) => {
    const { args, kwargs } = (node ?? {}) as { args?: unknown; kwargs?: Json };
    if (args === undefined) return node;
    if (tensorsIn(kwargs).length > 0) {
      const text = `layer '${String(name)}': TensorFlow.js takes no tensors by name, got ${Object.keys(kwargs!).join(", ")}`;
      throw errorFor("MODEL_NOT_SUPPORTED", `cannot load the Keras model '${path}': ${text}`);
    }
    return tensorsIn(args).map(({ config }) => [...referenced(config.keras_history, counted), {}]);
  });
}

function tensorsIn(value: unknown): KerasTensor[] {
  if (Array.isArray(value)) return value.flatMap(tensorsIn);
  if (typeof value !== "object" || value === null) return [];
  if ((value as Json).class_name === "__keras_tensor__") return [value as KerasTensor];
  return Object.values(value).flatMap(tensorsIn);
}

/** `.h5`: a group for each layer by its name, whose attribute lists the weights in order. */
function fillByName(tf: Tf, layers: readonly Layer[], weights: Group, path: string): void {
  for (const layer of layers) {
    if (layer.weights.length === 0) continue;
    const group = weights.get(layer.name) as Group | null;
    const names = group === null ? [] : namesOf(group, "weight_names");
    fill(
      tf,
      layer,
      names.map((name) => weightOf(group!.get(name), layer.name, path)),
      path,
    );
  }
}

/** Keras cuts lists that are too long for an attribute, and numbers their parts. */
function namesOf(group: Group, attribute: string): readonly string[] {
  const whole = group.attrs[attribute]?.value;
  if (whole !== undefined) return [...(whole as Iterable<string>)];
  const names: string[] = [];
  for (let part = 0; group.attrs[`${attribute}${part}`] !== undefined; part++)
    names.push(...(group.attrs[`${attribute}${part}`]!.value as Iterable<string>));
  return names;
}

/** An array of a file, and the names of its groups down to it. */
interface Entry {
  readonly path: readonly string[];
  readonly data: Dataset;
}

/** Files that were written on Windows have backslashes in their names. */
function entriesOf(group: Group, path: readonly string[] = []): Entry[] {
  return group.keys().flatMap((key) => {
    const below = [...path, ...key.split("\\")];
    const entry = group.get(key);
    if (entry === null) return [];
    return isGroup(entry) ? entriesOf(entry, below) : [{ path: below, data: entry }];
  });
}

const isGroup = (entry: Group | Dataset): entry is Group => "keys" in entry;

/** The groups of layers in a model: those of Keras 3, and those of Keras 2. */
const CONTAINERS = ["layers", "_layer_checkpoint_dependencies"];

/** State of random numbers, for training. */
const SEEDS = /^(seed_generator|_random_generator)$/;

/**
 * `.keras`: a group for each layer by its class, with a number from the second layer of the class on. Keras 2 counts
 * layers with weights twice, so only the order of the numbers matters.
 *
 * @param depth number of groups around the model
 */
function fillByClass(
  tf: Tf,
  layers: readonly Layer[],
  entries: readonly Entry[],
  path: string,
  depth = 0,
): void {
  const ofClass = new Map<string, Map<number, Entry[]>>();
  for (const entry of entries) {
    const [container, group] = entry.path.slice(depth);
    if (!CONTAINERS.includes(container!) || group === undefined || entry.path.some((key) => SEEDS.test(key)))
      continue;
    const [, name, number = "0"] = /^(.*?)(?:_(\d+))?$/.exec(group)!;
    const numbers = ofClass.get(name!) ?? new Map<number, Entry[]>();
    ofClass.set(name!, numbers.set(Number(number), [...(numbers.get(Number(number)) ?? []), entry]));
  }
  const inOrder = new Map(
    [...ofClass].map(([name, numbers]) => [
      name,
      [...numbers].sort(([a], [b]) => a - b).map(([, all]) => all),
    ]),
  );
  for (const layer of layers) {
    if (layer.weights.length === 0) continue;
    const own = inOrder.get(groupName(layer.getClassName()))?.shift() ?? [];
    if (layer.layers !== undefined) fillByClass(tf, layer.layers, own, path, depth + 2);
    else
      fill(
        tf,
        layer,
        own.sort(byPlace).map(({ data }) => weightOf(data, layer.name, path)),
        path,
      );
  }
}

/** `BatchNormalization` is written as `batch_normalization`. A model is a `functional` whatever TensorFlow.js calls it. */
function groupName(className: string): string {
  if (className === "Model") return "functional";
  if (className === RESET_AFTER_GRU) return "gru";
  return className
    .replace(/(.)([A-Z][a-z]+)/g, "$1_$2")
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase();
}

/** Variables of a layer before those of its parts, numbers in their order, and the forward one of two directions first. */
function byPlace(a: Entry, b: Entry): number {
  const rank = (key: string) => (key === "vars" ? 0 : key.startsWith("forward") ? 1 : 2);
  for (let i = 0; i < Math.min(a.path.length, b.path.length); i++) {
    const [left, right] = [a.path[i]!, b.path[i]!];
    const order = rank(left) - rank(right) || left.localeCompare(right, "en", { numeric: true });
    if (order !== 0) return order;
  }
  return a.path.length - b.path.length;
}

function weightOf(entry: Group | Dataset | null, layer: string, path: string): Weight {
  if (entry === null || isGroup(entry)) throw invalid(path, `weights of layer '${layer}' are missing`);
  const { shape, value } = entry;
  if (value instanceof Float32Array) return { shape, values: value };
  if (typeof value === "number") return { shape, values: Float32Array.of(value) };
  if (ArrayBuffer.isView(value)) return { shape, values: Float32Array.from(value as Float64Array, Number) };
  throw invalid(path, `weights of layer '${layer}': expected numbers`);
}

function fill(tf: Tf, layer: Layer, weights: readonly Weight[], path: string): void {
  const expected = layer.getWeights().map(({ shape }) => shape);
  const shapes = weights.map(({ shape }) => shape);
  if (JSON.stringify(expected) !== JSON.stringify(shapes)) {
    const text = `weights of layer '${layer.name}': expected the shapes ${JSON.stringify(expected)}, got ${JSON.stringify(shapes)}`;
    throw invalid(path, text);
  }
  const tensors = weights.map(({ values, shape }) => tf.tensor(values, [...shape]));
  layer.setWeights(tensors);
  tf.dispose(tensors);
}
