import { errorOf } from "@tritonjs/protocol";
import { ByteReader } from "./byte-reader.js";
import { type Forest, invalidModel, notSupported } from "./forest.js";
import {
  assertGroupCount,
  ForestBuilder,
  roundCount,
  type SourceTree,
  type TreeFileOptions,
} from "./forest-builder.js";
import { readLightgbm } from "./lightgbm.js";
import { readTreelite } from "./treelite.js";
import { parseXgboostJson, readXgboostDocument, xgboostObjective } from "./xgboost-document.js";

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
      return readXgboostDocument(parseXgboostJson(bytes), options);
    case "xgboost_ubj":
      return readXgboostDocument(decodeUbjson(bytes), options);
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
  throw errorOf("MODEL_NOT_SUPPORTED", `${name} not recognized as a valid serialization format.`);
}

/**
 * Recognizes the format of a file by its first bytes.
 *
 * @throws TritonError INVALID_ARG for a file of none of the formats
 */
export function detectModelType(bytes: Uint8Array): ModelType {
  const start = Buffer.from(bytes.subarray(0, 256)).toString("latin1");
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

/** A value of a UBJSON file. Arrays of one type of number are typed arrays. Objects have no prototype. */
type UbjsonValue =
  | null
  | boolean
  | number
  | string
  | readonly UbjsonValue[]
  | NumberArray
  | { readonly [key: string]: UbjsonValue };

type NumberArray = Uint8Array | Int8Array | Int16Array | Int32Array | Float32Array | Float64Array;

/** Models nest ten levels; the limit keeps hostile files from exhausting the stack. */
const MAX_LEVELS = 64;

const FORMAT = "XGBoost UBJSON";

/**
 * Decodes UBJSON, the format of `Booster.save_model("model.ubj")`: big-endian, with typed arrays.
 *
 * @throws TritonError INVALID_ARG for anything else
 */
function decodeUbjson(bytes: Uint8Array): UbjsonValue {
  const reader = new ByteReader(bytes, FORMAT, false);
  return readValue(reader, marker(reader), 0);
}

function marker(reader: ByteReader): string {
  for (;;) {
    const read = String.fromCharCode(reader.uint8());
    if (read !== "N") return read;
  }
}

function readValue(reader: ByteReader, type: string, level: number): UbjsonValue {
  if (level > MAX_LEVELS) throw fault(reader, `expected at most ${MAX_LEVELS} levels, got more`);
  switch (type) {
    case "Z":
      return null;
    case "T":
      return true;
    case "F":
      return false;
    case "S":
    case "H":
      return reader.text(lengthOf(reader));
    case "C":
      return reader.text(1);
    case "[":
      return arrayOf(reader, level);
    case "{":
      return objectOf(reader, level);
    default:
      return numberOf(reader, type);
  }
}

function numberOf(reader: ByteReader, type: string): number {
  switch (type) {
    case "U":
      return reader.uint8();
    case "i":
      return reader.int8();
    case "I":
      return reader.int16();
    case "l":
      return reader.int32();
    case "L":
      return reader.int64();
    case "d":
      return reader.float32();
    case "D":
      return reader.float64();
    default:
      throw fault(reader, `expected a type, got ${JSON.stringify(type)}`);
  }
}

function lengthOf(reader: ByteReader, type = marker(reader)): number {
  if (!"UiIlL".includes(type))
    throw fault(reader, `expected an integer as length, got ${JSON.stringify(type)}`);
  const length = numberOf(reader, type);
  if (!Number.isSafeInteger(length) || length < 0)
    throw fault(reader, `expected a length from 0, got ${length}`);
  return length;
}

function arrayOf(reader: ByteReader, level: number): UbjsonValue {
  let next = marker(reader);
  let type: string | undefined;
  if (next === "$") {
    type = marker(reader);
    next = marker(reader);
    if (next !== "#")
      throw fault(reader, `expected the length of a typed array, got ${JSON.stringify(next)}`);
  }
  if (next === "#") {
    const length = lengthOf(reader);
    if (type !== undefined) return typedArray(reader, type, length, level);
    // Each element takes at least one byte.
    if (length > reader.left) throw fault(reader, `expected ${length} elements, got ${reader.left} bytes`);
    const values: UbjsonValue[] = [];
    for (let i = 0; i < length; i++) values.push(readValue(reader, marker(reader), level + 1));
    return values;
  }
  const values: UbjsonValue[] = [];
  for (; next !== "]"; next = marker(reader)) values.push(readValue(reader, next, level + 1));
  return values;
}

function typedArray(reader: ByteReader, type: string, length: number, level: number): UbjsonValue {
  switch (type) {
    case "U":
      return new Uint8Array(reader.elements(length, 1));
    case "i":
      return new Int8Array(reader.elements(length, 1));
    case "I":
      return new Int16Array(swapped(reader.elements(length, 2), 2));
    case "l":
      return new Int32Array(swapped(reader.elements(length, 4), 4));
    case "d":
      return new Float32Array(swapped(reader.elements(length, 4), 4));
    case "D":
      return new Float64Array(swapped(reader.elements(length, 8), 8));
    case "L":
      return Float64Array.from(new BigInt64Array(swapped(reader.elements(length, 8), 8)), Number);
  }
  if (!"SHC[{".includes(type))
    throw fault(reader, `expected an array of numbers, got elements of type ${JSON.stringify(type)}`);
  if (length > reader.left) throw fault(reader, `expected ${length} elements, got ${reader.left} bytes`);
  const values: UbjsonValue[] = [];
  for (let i = 0; i < length; i++) values.push(readValue(reader, type, level + 1));
  return values;
}

/** Turns big-endian elements into the order of this machine, in place. */
function swapped(buffer: ArrayBuffer, size: 2 | 4 | 8): ArrayBuffer {
  const bytes = Buffer.from(buffer);
  if (size === 2) bytes.swap16();
  else if (size === 4) bytes.swap32();
  else bytes.swap64();
  return buffer;
}

function objectOf(reader: ByteReader, level: number): UbjsonValue {
  const object: Record<string, UbjsonValue> = Object.create(null);
  let next = marker(reader);
  let count = Number.POSITIVE_INFINITY;
  if (next === "$") throw fault(reader, "expected an object with values of any type, got a typed object");
  if (next === "#") {
    count = lengthOf(reader);
    if (count > reader.left) throw fault(reader, `expected ${count} members, got ${reader.left} bytes`);
    next = count > 0 ? marker(reader) : "}";
  }
  for (let read = 0; read < count && next !== "}"; read++) {
    const key = reader.text(lengthOf(reader, next));
    object[key] = readValue(reader, marker(reader), level + 1);
    next = read + 1 < count ? marker(reader) : "}";
  }
  return object;
}

function fault(reader: ByteReader, text: string): Error {
  return invalidModel(`${FORMAT}: at offset ${reader.at}: ${text}`);
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
  const trees: SourceTree[] = [];
  for (let i = 0; i < count; i++) trees.push(readTree(reader, major));
  const groups = Array.from({ length: count }, () => reader.int32());
  const weights = booster === "dart" ? readWeights(reader, count) : undefined;
  const best = hasAttributes ? readBestRound(reader) : undefined;
  assertGroupCount(classes, count, 1);
  const objective = xgboostObjective(objectiveName, classes);
  if (Number.isNaN(score)) throw invalidModel(`${LEGACY_FORMAT}: base score: expected a number, got NaN`);
  const builder = new ForestBuilder({
    features,
    groups: classes,
    task: objective.task,
    link: objective.link,
    base: new Float64Array(classes).fill(major >= 1 ? objective.toSum(score) : score),
    averages: false,
    single: true,
    leafWidth: 1,
  });
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
  return Buffer.from(bytes.subarray(0, text.length)).toString("latin1") === text;
}
