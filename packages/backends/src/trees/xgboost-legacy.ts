import { ByteReader } from "./byte-reader.js";
import { type Forest, invalidModel, notSupported } from "./forest.js";
import {
  assertGroupCount,
  ForestBuilder,
  roundCount,
  type SourceTree,
  type TreeFileOptions,
} from "./forest-builder.js";
import { xgboostObjective } from "./xgboost-document.js";

const FORMAT = "XGBoost binary";
const NODE_BYTES = 20;
const STATISTIC_BYTES = 16;

/**
 * Reads XGBoost's binary format, which XGBoost wrote until version 3: structures as they are in memory, little-endian.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for boosters and objectives that cannot be served
 */
export function readXgboostLegacy(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const reader = new ByteReader(bytes, FORMAT, true);
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
  if (Number.isNaN(score)) throw invalidModel(`${FORMAT}: base score: expected a number, got NaN`);
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
  if (length !== count) throw invalidModel(`${FORMAT}: expected ${count} weights of trees, got ${length}`);
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
