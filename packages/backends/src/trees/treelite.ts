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
  type Comparison,
  ForestBuilder,
  roundCount,
  type SourceTree,
  type TreeFileOptions,
} from "./forest-builder.js";

const FORMAT = "Treelite checkpoint";
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

/** Comparisons by their number in the file. */
const COMPARISONS: Readonly<Record<number, Comparison>> = { 2: "<", 3: "<=", 4: ">", 5: ">=" };
const CATEGORICAL = 2;
const LEAF = 0;

/**
 * Reads a checkpoint of Treelite 4, which `treelite.Model.serialize` writes.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for other versions, models with several targets, and
 * link functions that are not known
 */
export function readTreelite(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const reader = new ByteReader(bytes, FORMAT, true);
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
      `${FORMAT}: expected thresholds and leaves of type 2 or 3, got ${thresholdType} and ${leafType}`,
    );
  const count = reader.uint64();
  const head = readHead(reader, leafType === SINGLE, count);
  const builder = new ForestBuilder(head.forest);
  const perRound = head.forest.leafWidth > 1 ? 1 : head.forest.groups;
  const used = roundCount(count, perRound, options.rounds, () => undefined);
  for (let i = 0; i < count; i++) {
    const tree = readTree(reader, leafType, head.forest.leafWidth, head.groupOf(i));
    if (i < used) builder.add(tree);
  }
  return builder.build();
}

interface Head {
  readonly forest: ForestHead;
  groupOf(tree: number): number;
}

function readHead(reader: ByteReader, single: boolean, count: number): Head {
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
  if (task === undefined) throw invalidModel(`${FORMAT}: expected a task from 0 to ${TASKS.length - 1}`);
  if (targets !== 1 || classes.length !== 1)
    throw notSupported(`Multi-target model not supported: expected 1 target, got ${targets}`);
  const groups = classes[0]!;
  assertGroupCount(groups, count, (shape[0] ?? 0) * (shape[1] ?? 0));
  const leafWidth = (shape[0] ?? 0) * (shape[1] ?? 0);
  if (shape.length !== 2 || (leafWidth !== 1 && leafWidth !== groups))
    throw invalidModel(`${FORMAT}: leaf_vector_shape: expected [1,1] or [1,${groups}], got [${shape}]`);
  if (base.length !== groups)
    throw invalidModel(`${FORMAT}: base_scores: expected ${groups} numbers, got ${base.length}`);
  if (classIds.length !== count || targetIds.length !== count)
    throw invalidModel(`${FORMAT}: class_id: expected ${count} numbers, got ${classIds.length}`);
  const link = LINKS.find((name) => name === linkName);
  if (link === undefined) throw notSupported(`Post-processor named '${linkName.slice(0, 40)}' not found`);
  if (
    !(
      Number.isFinite(alpha) &&
      Number.isFinite(ratio) &&
      (ratio !== 0 || link !== "exponential_standard_ratio")
    )
  )
    throw invalidModel(`${FORMAT}: sigmoid_alpha and ratio_c: expected numbers, got ${alpha} and ${ratio}`);
  const forest = {
    features,
    groups,
    task,
    link: { name: link, alpha, ratio },
    base,
    averages,
    single,
    leafWidth,
  };
  return { forest, groupOf: (tree) => classIds[tree]! };
}

function readTree(reader: ByteReader, type: number, width: number, group: number): SourceTree {
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
      throw invalidModel(`${FORMAT}: ${name} of a tree: expected ${size} elements, got ${column.length}`);
  }
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
          `${FORMAT}: expected a comparison <, <=, > or >=, got number ${comparisons[node]}`,
        );
      return comparison;
    },
    missingGoLeft: (node) => defaultLeft[node] !== 0,
    categorical: (node) => {
      if (types[node] !== CATEGORICAL) return undefined;
      const [begin, end] = part(categoryBegins, categoryEnds, node, categories.length);
      return { categories: categories.subarray(begin, end), matchesGoRight: matchesGoRight[node] === 1 };
    },
    leaf: (node, index) => {
      const [begin, end] =
        vectorBegins.length === 0 ? [0, 0] : part(vectorBegins, vectorEnds, node, vectors.length);
      if (begin === end && width === 1) return values[node]!;
      if (end - begin !== width)
        throw invalidModel(`${FORMAT}: leaf: expected ${width} values, got ${end - begin}`);
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
    `${FORMAT}: node ${node}: expected a part of ${length} elements, got ${begin} to ${end}`,
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

/** An array of the file: its length, then its elements. */
function list(reader: ByteReader, size: number): ArrayBuffer {
  return reader.elements(reader.uint64(), size);
}

function integers(reader: ByteReader): Int32Array {
  return new Int32Array(list(reader, 4));
}

function numbers(reader: ByteReader, type: number): Float32Array | Float64Array {
  return type === SINGLE ? new Float32Array(list(reader, 4)) : new Float64Array(list(reader, 8));
}

/** 64-bit integers as numbers. */
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
