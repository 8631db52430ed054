import { errorFor } from "@tritonjs/protocol";
import { ByteReader } from "./byte-reader.js";
import {
  type Forest,
  type ForestHead,
  invalidModel,
  type LinkName,
  notSupported,
  type Task,
} from "./forest.js";
import {
  assertGroupCount,
  assertTreeCount,
  CategoryShares,
  type Comparison,
  ForestBuilder,
  roundCount,
  type SourceTree,
  type TreeFileOptions,
} from "./forest-builder.js";
import { readLightgbm } from "./lightgbm.js";
import { readXgboostDocument, xgboostBuilder } from "./xgboost-document.js";

/**
 * Reads a model file.
 *
 * @throws TritonError INVALID_ARG for a file that is not a valid model of its format; UNSUPPORTED for models that
 * cannot be served
 */
export function readForest(bytes: Uint8Array, type: ModelType, options: TreeFileOptions): Forest {
  switch (type) {
    case "xgboost":
      return readXgboostLegacy(bytes, options);
    case "xgboost_json":
    case "xgboost_ubj":
      return readXgboostDocument(bytes, type === "xgboost_ubj", options);
    case "lightgbm":
      return readLightgbm(bytes, options);
    case "treelite_checkpoint":
      return readTreelite(bytes, options);
  }
}

/** Formats of model files by Triton's names. */
export type ModelType = "xgboost" | "xgboost_json" | "xgboost_ubj" | "lightgbm" | "treelite_checkpoint";

/** Usual file name of each format. */
export const FILE_NAMES: Readonly<Record<ModelType, string>> = {
  xgboost: "xgboost.model",
  xgboost_json: "xgboost.json",
  xgboost_ubj: "xgboost.ubj",
  lightgbm: "model.txt",
  treelite_checkpoint: "checkpoint.tl",
};

/** @throws TritonError UNSUPPORTED, in the words of Triton's backend, for the name of an unknown format */
export function modelTypeOf(name: string): ModelType {
  if (Object.hasOwn(FILE_NAMES, name)) return name as ModelType;
  throw errorFor("MODEL_NOT_SUPPORTED", `${name} not recognized as a valid serialization format.`);
}

/**
 * Recognizes the format of a file by its first bytes.
 *
 * @throws TritonError INVALID_ARG for a file of none of the formats
 */
export function detectModelType(bytes: Uint8Array): ModelType {
  const start = String.fromCharCode(...bytes.subarray(0, 256));
  const isTreelite = (bytes[0] === 3 || bytes[0] === 4) && start.slice(1, 4) === "\0\0\0";
  if (/^\{[NUiIlL#]/.test(start)) return "xgboost_ubj";
  if (/^\s*\{/.test(start)) return "xgboost_json";
  if (/^tree\r?\n/.test(start)) return "lightgbm";
  if (isTreelite) return "treelite_checkpoint";
  if (start.startsWith("binf") || bytes.byteLength > 136 + 16) return "xgboost";
  throw invalidModel(
    `expected a model of XGBoost, LightGBM or Treelite, got a file that begins with ${JSON.stringify(start.slice(0, 16))}`,
  );
}

const LEGACY_FORMAT = "XGBoost binary";
const NODE_BYTES = 20;
const STATISTIC_BYTES = 16;

/**
 * Reads XGBoost's binary format, which XGBoost wrote until version 3: structures as they are in memory, little-endian.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for boosters and objectives that cannot be served
 */
function readXgboostLegacy(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const reader = new ByteReader(bytes, LEGACY_FORMAT, true);
  if (startsWith(bytes, "bs64"))
    throw notSupported("Ill-formed XGBoost model file: Base64 format no longer supported");
  if (startsWith(bytes, "binf")) reader.skip(4);
  const score = reader.float32();
  const features = reader.uint32();
  const classes = Math.max(1, reader.int32());
  const hasAttributes = reader.int32() !== 0;
  reader.skip(4);
  const major = reader.uint32();
  const minor = reader.uint32();
  const targets = Math.max(1, reader.uint32());
  reader.skip(4 * 26);
  const objectiveName = reader.text(reader.uint64());
  const booster = reader.text(reader.uint64());
  if (booster !== "gbtree" && booster !== "dart") {
    throw notSupported(
      `Invalid XGBoost model file: Gradient booster must be gbtree or dart type. Got: ${JSON.stringify(booster.slice(0, 40))}`,
    );
  }
  if (targets > 1) throw notSupported(`Multi-target model not supported: num_target is ${targets}`);
  const count = reader.int32();
  // Since XGBoost 1.6, the number of parallel trees is where the number of roots was.
  const roots = reader.int32();
  const parallel = major > 1 || (major === 1 && minor >= 6) ? Math.max(1, roots) : 1;
  reader.skip(4 * 2 + 8 + 4 * 2 + 4 * 32);
  if (count < 0) throw invalidModel("Invalid XGBoost model file: num_trees must be 0 or greater");
  assertTreeCount(count);
  const trees: SourceTree[] = [];
  for (let i = 0; i < count; i++) trees.push(readTree(reader, major));
  const groups = Array.from({ length: count }, () => reader.int32());
  const weights = booster === "dart" ? readWeights(reader, count) : undefined;
  const best = hasAttributes ? readBestRound(reader) : undefined;
  assertGroupCount(classes, count, 1);
  if (Number.isNaN(score)) throw invalidModel(`${LEGACY_FORMAT}: base score: expected a number, got NaN`);
  const builder = xgboostBuilder(objectiveName, features, classes, 1, (toSum) =>
    new Float64Array(classes).fill(major >= 1 ? toSum(score) : score),
  );
  const used = roundCount(count, classes * parallel, options.rounds, () => best);
  for (let i = 0; i < used; i++) {
    const { leaf, ...tree } = trees[i]!;
    const weight = weights?.[i] ?? 1;
    builder.add({
      ...tree,
      leaf: (node, index) => Math.fround(leaf(node, index) * weight),
      group: groups[i]!,
    });
  }
  return builder.build();
}

/** A node is the places of its parent and children, its feature with the default direction, and a number. */
function readTree(reader: ByteReader, major: number): SourceTree {
  const roots = reader.int32();
  const size = reader.int32();
  reader.skip(4 * 3);
  const leafVector = reader.int32();
  reader.skip(4 * 31);
  if (roots !== 1)
    throw notSupported(
      "Invalid XGBoost model file: treelite does not support trees with multiple roots, and neither does this server",
    );
  if (size < 1) throw invalidModel("Ill-formed XGBoost model file: a tree can't be empty");
  const nodes = new DataView(reader.elements(size, NODE_BYTES));
  const statistics = new DataView(reader.elements(size, STATISTIC_BYTES));
  if (major < 2 && leafVector !== 0) reader.skip(4 * reader.uint64());
  if (major >= 2 && leafVector > 1)
    throw notSupported("Multi-target models are not supported with binary serialization.");
  const left = new Int32Array(size);
  const right = new Int32Array(size);
  const feature = new Int32Array(size);
  const number = new Float32Array(size);
  const defaultLeft = new Uint8Array(size);
  for (let node = 0; node < size; node++) {
    const at = node * NODE_BYTES;
    left[node] = nodes.getInt32(at + 4, true);
    right[node] = nodes.getInt32(at + 8, true);
    const index = nodes.getUint32(at + 12, true);
    feature[node] = index & 0x7fffffff;
    defaultLeft[node] = index >>> 31;
    number[node] = nodes.getFloat32(at + 16, true);
  }
  return {
    size,
    left,
    right,
    feature,
    threshold: number,
    comparison: "<",
    missingGoLeft: (node) => defaultLeft[node] === 1,
    leaf: (node) => number[node]!,
    cover: (node) => statistics.getFloat32(node * STATISTIC_BYTES + 4, true),
    group: 0,
  };
}

function readWeights(reader: ByteReader, count: number): Float32Array {
  const length = reader.uint64();
  if (length !== count)
    throw invalidModel(`${LEGACY_FORMAT}: expected ${count} weights of trees, got ${length}`);
  return new Float32Array(reader.elements(length, 4));
}

/** Attributes are pairs of strings. */
function readBestRound(reader: ByteReader): number | undefined {
  const count = reader.uint64();
  let best: number | undefined;
  for (let i = 0; i < count; i++) {
    const key = reader.text(reader.uint64());
    const value = reader.text(reader.uint64());
    if (key === "best_iteration") best = Number(value) + 1;
  }
  return best;
}

function startsWith(bytes: Uint8Array, text: string): boolean {
  return String.fromCharCode(...bytes.subarray(0, text.length)) === text;
}

const TREELITE = "Treelite checkpoint";
const SINGLE = 2;
const DOUBLE = 3;
const TASKS: readonly Task[] = ["binary", "regression", "multiclass", "ranking", "anomaly"];
const LINKS: readonly LinkName[] = [
  "identity",
  "signed_square",
  "hinge",
  "sigmoid",
  "exponential",
  "exponential_standard_ratio",
  "logarithm_one_plus_exp",
  "identity_multiclass",
  "softmax",
  "multiclass_ova",
];

const COMPARISONS: Readonly<Record<number, Comparison>> = { 2: "<", 3: "<=", 4: ">", 5: ">=" };
const CATEGORICAL = 2;
const LEAF = 0;

/**
 * Reads a checkpoint of Treelite 4, which `treelite.Model.serialize` writes.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for other versions, models with several targets, and
 * link functions that are not known
 */
function readTreelite(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const reader = new ByteReader(bytes, TREELITE, true);
  const version = [reader.int32(), reader.int32(), reader.int32()];
  if (version[0] !== 4) {
    throw notSupported(
      `Cannot load model from a different major Treelite version. Expected: 4.x, got: ${version.join(".")}. ` +
        "Load the model with that version, export it, and serialize it with Treelite 4",
    );
  }
  const [thresholdType, leafType] = [reader.uint8(), reader.uint8()];
  if (thresholdType !== leafType || (leafType !== SINGLE && leafType !== DOUBLE))
    throw invalidModel(
      `${TREELITE}: expected thresholds and leaves of type 2 or 3, got ${thresholdType} and ${leafType}`,
    );
  const count = reader.uint64();
  const head = readHead(reader, leafType === SINGLE, count);
  const builder = new ForestBuilder(head.forest);
  const perRound = head.forest.leafWidth > 1 ? 1 : head.forest.groups;
  const used = roundCount(count, perRound, options.rounds, () => undefined);
  for (let i = 0; i < count; i++) {
    const tree = readTreeliteTree(reader, leafType, head.forest.leafWidth, head.groupOf(i));
    if (i < used) builder.add(tree);
  }
  return builder.build();
}

function readHead(
  reader: ByteReader,
  single: boolean,
  count: number,
): { readonly forest: ForestHead; groupOf(tree: number): number } {
  const features = reader.int32();
  const task = TASKS[reader.uint8()];
  const averages = reader.uint8() !== 0;
  const targets = reader.int32();
  const classes = integers(reader);
  const shape = integers(reader);
  const targetIds = integers(reader);
  const classIds = integers(reader);
  const linkName = reader.text(reader.uint64());
  const alpha = reader.float32();
  const ratio = reader.float32();
  const base = new Float64Array(reader.elements(reader.uint64(), 8));
  reader.skip(reader.uint64());
  skipOptional(reader);
  if (task === undefined) throw invalidModel(`${TREELITE}: expected a task from 0 to ${TASKS.length - 1}`);
  if (targets !== 1 || classes.length !== 1)
    throw notSupported(`Multi-target model not supported: expected 1 target, got ${targets}`);
  const groups = classes[0]!;
  assertTreeCount(count);
  assertGroupCount(groups, count, (shape[0] ?? 0) * (shape[1] ?? 0));
  const leafWidth = (shape[0] ?? 0) * (shape[1] ?? 0);
  if (shape.length !== 2 || (leafWidth !== 1 && leafWidth !== groups))
    throw invalidModel(`${TREELITE}: leaf_vector_shape: expected [1,1] or [1,${groups}], got [${shape}]`);
  if (base.length !== groups)
    throw invalidModel(`${TREELITE}: base_scores: expected ${groups} numbers, got ${base.length}`);
  if (classIds.length !== count || targetIds.length !== count)
    throw invalidModel(`${TREELITE}: class_id: expected ${count} numbers, got ${classIds.length}`);
  const link = LINKS.find((name) => name === linkName);
  if (link === undefined) throw notSupported(`Post-processor named '${linkName.slice(0, 40)}' not found`);
  const dividesByZero = ratio === 0 && link === "exponential_standard_ratio";
  if (!Number.isFinite(alpha) || !Number.isFinite(ratio) || dividesByZero)
    throw invalidModel(`${TREELITE}: sigmoid_alpha and ratio_c: expected numbers, got ${alpha} and ${ratio}`);
  const linked = { name: link, alpha, ratio };
  const forest = { features, groups, task, link: linked, base, averages, single, leafWidth };
  return { forest, groupOf: (tree) => classIds[tree]! };
}

function readTreeliteTree(reader: ByteReader, type: number, width: number, group: number): SourceTree {
  const size = reader.int32();
  reader.skip(1);
  const types = new Int8Array(list(reader, 1));
  const left = integers(reader);
  const right = integers(reader);
  const feature = integers(reader);
  const defaultLeft = new Uint8Array(list(reader, 1));
  const values = numbers(reader, type);
  const threshold = numbers(reader, type);
  const comparisons = new Int8Array(list(reader, 1));
  const matchesGoRight = new Uint8Array(list(reader, 1));
  const vectors = numbers(reader, type);
  const vectorBegins = places(reader);
  const vectorEnds = places(reader);
  const categories = new Uint32Array(list(reader, 4));
  const categoryBegins = places(reader);
  const categoryEnds = places(reader);
  const counts = places(reader);
  const hasCount = new Uint8Array(list(reader, 1));
  const weights = new Float64Array(list(reader, 8));
  const hasWeight = new Uint8Array(list(reader, 1));
  list(reader, 8);
  list(reader, 1);
  skipOptional(reader);
  skipOptional(reader);
  const columns = { types, left, right, feature, defaultLeft, values, threshold, comparisons };
  for (const [name, column] of Object.entries(columns)) {
    if (column.length !== size)
      throw invalidModel(`${TREELITE}: ${name} of a tree: expected ${size} elements, got ${column.length}`);
  }
  const shares = new CategoryShares(`${TREELITE}: a tree`, categories.length);
  const cover = coverOf(size, weights, hasWeight) ?? coverOf(size, counts, hasCount);
  return {
    size,
    left: left.map((child, node) => (types[node] === LEAF ? -1 : child === -1 ? -2 : child)),
    right,
    feature,
    threshold,
    comparison: (node) => {
      const comparison = COMPARISONS[comparisons[node]!];
      if (comparison === undefined)
        throw notSupported(
          `${TREELITE}: expected a comparison <, <=, > or >=, got number ${comparisons[node]}`,
        );
      return comparison;
    },
    missingGoLeft: (node) => defaultLeft[node] !== 0,
    categorical: (node) => {
      if (types[node] !== CATEGORICAL) return undefined;
      const [begin, end] = part(categoryBegins, categoryEnds, node, categories.length);
      shares.take(end - begin);
      return { categories: categories.subarray(begin, end), matchesGoRight: matchesGoRight[node] === 1 };
    },
    leaf: (node, index) => {
      const [begin, end] =
        vectorBegins.length === 0 ? [0, 0] : part(vectorBegins, vectorEnds, node, vectors.length);
      if (begin === end && width === 1) return values[node]!;
      if (end - begin !== width)
        throw invalidModel(`${TREELITE}: leaf: expected ${width} values, got ${end - begin}`);
      return vectors[begin + index]!;
    },
    cover,
    group,
  };
}

function part(begins: Float64Array, ends: Float64Array, node: number, length: number): [number, number] {
  const [begin, end] = [begins[node], ends[node]];
  if (begin !== undefined && end !== undefined && begin <= end && end <= length) return [begin, end];
  throw invalidModel(
    `${TREELITE}: node ${node}: expected a part of ${length} elements, got ${begin} to ${end}`,
  );
}

function coverOf(
  size: number,
  numbersOf: Float64Array,
  present: Uint8Array,
): ((node: number) => number) | undefined {
  if (numbersOf.length !== size || present.length !== size || present.includes(0)) return undefined;
  return (node) => numbersOf[node]!;
}

function list(reader: ByteReader, size: number): ArrayBuffer {
  return reader.elements(reader.uint64(), size);
}

function integers(reader: ByteReader): Int32Array {
  return new Int32Array(list(reader, 4));
}

function numbers(reader: ByteReader, type: number): Float32Array | Float64Array {
  return type === SINGLE ? new Float32Array(list(reader, 4)) : new Float64Array(list(reader, 8));
}

function places(reader: ByteReader): Float64Array {
  return Float64Array.from(new BigUint64Array(list(reader, 8)), Number);
}

/** Fields of later versions: a name, the size of an element, and the elements. */
function skipOptional(reader: ByteReader): void {
  const count = reader.int32();
  for (let i = 0; i < count; i++) {
    reader.skip(reader.uint64());
    const size = reader.uint64();
    reader.skip(size * reader.uint64());
  }
}
