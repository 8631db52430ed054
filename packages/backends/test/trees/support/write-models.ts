import type { PlainForest, PlainNode } from "./plain-forest.js";

/** Nodes of a tree in the order of a walk from the root: children come after their parents. */
export function nodesOf(root: PlainNode): { nodes: PlainNode[]; left: number[]; right: number[] } {
  const nodes = [root];
  const left: number[] = [];
  const right: number[] = [];
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[i]!;
    if ("leaf" in node) {
      left.push(-1);
      right.push(-1);
      continue;
    }
    left.push(nodes.push(node.left) - 1);
    right.push(nodes.push(node.right) - 1);
  }
  return { nodes, left, right };
}

/** The document of a model of XGBoost, whose categories go right. */
export function xgboostDocument(
  { features, groups, trees }: PlainForest,
  objective = groups > 1 ? "multi:softprob" : "reg:squarederror",
) {
  return {
    version: [1, 7, 4],
    learner: {
      attributes: {},
      feature_names: [],
      feature_types: [],
      learner_model_param: {
        base_score: "0E0",
        num_class: groups > 1 ? `${groups}` : "0",
        num_feature: `${features}`,
        num_target: "1",
      },
      objective: { name: objective },
      gradient_booster: {
        name: "gbtree",
        model: {
          gbtree_model_param: { num_trees: `${trees.length}`, num_parallel_tree: "1", size_leaf_vector: "0" },
          tree_info: trees.map((_, i) => i % groups),
          trees: trees.map((tree, id) => xgboostTreeDocument(tree, id, features)),
        },
      },
    },
  };
}

function xgboostTreeDocument(root: PlainNode, id: number, features: number) {
  const { nodes, left, right } = nodesOf(root);
  const ofSplit = <T>(otherwise: T, value: (node: Exclude<PlainNode, { leaf: unknown }>) => T) =>
    nodes.map((node) => ("leaf" in node ? otherwise : value(node)));
  const categorical = nodes.flatMap((node, i) =>
    "leaf" in node || node.categories === undefined ? [] : [{ i, categories: node.categories }],
  );
  return {
    id,
    tree_param: {
      num_nodes: `${nodes.length}`,
      size_leaf_vector: "0",
      num_deleted: "0",
      num_feature: `${features}`,
    },
    left_children: left.map((child, i) => (isMirrored(nodes[i]!) ? right[i] : child)),
    right_children: right.map((child, i) => (isMirrored(nodes[i]!) ? left[i] : child)),
    parents: nodes.map(() => 0),
    split_indices: ofSplit(0, ({ feature }) => feature),
    split_conditions: nodes.map((node) => ("leaf" in node ? node.leaf[0]! : node.threshold)),
    split_type: ofSplit(0, ({ categories }) => (categories === undefined ? 0 : 1)),
    default_left: ofSplit(0, (node) => (node.missingGoLeft !== isMirrored(node) ? 1 : 0)),
    base_weights: nodes.map(() => 0),
    loss_changes: nodes.map(() => 0),
    sum_hessian: nodes.map(({ cover }) => cover),
    categories_nodes: categorical.map(({ i }) => i),
    categories_sizes: categorical.map(({ categories }) => categories.length),
    categories_segments: segments(categorical.map(({ categories }) => categories))[0],
    categories: categorical.flatMap(({ categories }) => [...categories].sort((a, b) => a - b)),
  };
}

function isMirrored(node: PlainNode): boolean {
  return !("leaf" in node) && node.categories !== undefined;
}

/** Encodes a document as XGBoost does: typed arrays of numbers, integers and floats of 32 bits. */
export function ubjson(value: unknown): Buffer {
  if (typeof value === "string") return Buffer.concat([Buffer.from("S"), sized(value)]);
  if (typeof value === "number") {
    const buffer = Buffer.alloc(5, Number.isInteger(value) ? "l" : "d");
    if (Number.isInteger(value)) buffer.writeInt32BE(value, 1);
    else buffer.writeFloatBE(value, 1);
    return buffer;
  }
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((one) => typeof one === "number")) return typedArray(value);
    return Buffer.concat([Buffer.from("[#"), int64(value.length), ...value.map(ubjson)]);
  }
  const members = Object.entries(value as object).map(([key, member]) =>
    Buffer.concat([sized(key), ubjson(member)]),
  );
  return Buffer.concat([Buffer.from("{"), ...members, Buffer.from("}")]);
}

function typedArray(values: readonly number[]): Buffer {
  const integers = values.every(
    (one) => Number.isInteger(one) && Math.abs(one) < 2 ** 31 && !Object.is(one, -0),
  );
  const buffer = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) {
    if (integers) buffer.writeInt32BE(value, 4 * i);
    else buffer.writeFloatBE(value, 4 * i);
  }
  return Buffer.concat([Buffer.from(`[$${integers ? "l" : "d"}#`), int64(values.length), buffer]);
}

function int64(value: number): Buffer {
  const buffer = Buffer.alloc(9, "L");
  buffer.writeBigInt64BE(BigInt(value), 1);
  return buffer;
}

function sized(text: string): Buffer {
  return Buffer.concat([int64(Buffer.byteLength(text)), Buffer.from(text)]);
}

/** The text of a model of LightGBM: splits and leaves are numbered apart, and a negative child is a leaf. */
export function lightgbmText(
  { features, groups, trees }: PlainForest,
  objective = groups > 1 ? `multiclass num_class:${groups}` : "regression",
): string {
  const head = [
    "tree",
    "version=v4",
    `num_class=${groups}`,
    `num_tree_per_iteration=${groups}`,
    "label_index=0",
    `max_feature_idx=${features - 1}`,
    `objective=${objective}`,
    `feature_names=${Array.from({ length: features }, (_, i) => `Column_${i}`).join(" ")}`,
    "",
  ];
  return [
    ...head,
    ...trees.flatMap(lightgbmTree),
    "end of trees",
    "",
    "parameters:",
    "[boosting: gbdt]",
    "end of parameters",
    "",
  ].join("\n");
}

function lightgbmTree(root: PlainNode, number: number): string[] {
  const splits: Exclude<PlainNode, { leaf: unknown }>[] = [];
  const leaves: Extract<PlainNode, { leaf: unknown }>[] = [];
  const places = new Map<PlainNode, number>();
  const walk = (node: PlainNode): number => {
    if ("leaf" in node) return -leaves.push(node);
    const place = splits.push(node) - 1;
    left[place] = walk(node.left);
    right[place] = walk(node.right);
    places.set(node, place);
    return place;
  };
  const left: number[] = [];
  const right: number[] = [];
  walk(root);
  const bounds = [0];
  const words: number[] = [];
  const thresholds = splits.map(({ threshold, categories }) => {
    if (categories === undefined) return threshold;
    const set = new Array<number>(Math.floor(Math.max(...categories) / 32) + 1).fill(0);
    for (const category of categories)
      set[category >> 5] = (set[category >> 5]! | (1 << (category & 31))) >>> 0;
    words.push(...set);
    bounds.push(words.length);
    return bounds.length - 2;
  });
  const count = bounds.length - 1;
  const lines = [
    `Tree=${number}`,
    `num_leaves=${leaves.length}`,
    `num_cat=${count}`,
    ...(splits.length === 0
      ? []
      : [
          `split_feature=${splits.map(({ feature }) => feature).join(" ")}`,
          `threshold=${thresholds.map((one) => (Object.is(one, -0) ? "-0" : String(one))).join(" ")}`,
          // Missing values are NaN: bits 2 and 3 are 2.
          `decision_type=${splits.map(({ missingGoLeft, categories }) => (categories !== undefined ? 1 : 0) | (missingGoLeft ? 2 : 0) | 8).join(" ")}`,
          `left_child=${left.join(" ")}`,
          `right_child=${right.join(" ")}`,
          `internal_count=${splits.map(({ cover }) => cover).join(" ")}`,
        ]),
    `leaf_value=${leaves.map(({ leaf }) => leaf[0]).join(" ")}`,
    `leaf_count=${leaves.map(({ cover }) => cover).join(" ")}`,
    ...(count === 0 ? [] : [`cat_boundaries=${bounds.join(" ")}`, `cat_threshold=${words.join(" ")}`]),
    "is_linear=0",
    "shrinkage=0.1",
    "",
  ];
  return lines;
}

/** Properties of a Treelite checkpoint. */
export interface TreeliteOptions {
  readonly single?: boolean;
  readonly link?: string;
  readonly averages?: boolean;
  readonly comparison?: "<" | "<=" | ">" | ">=";
  readonly base?: readonly number[];
  readonly task?: number;
}

/** A checkpoint of Treelite 4. With `>` and `>=`, the children are exchanged, so that the model stays the same. */
export function treeliteCheckpoint(forest: PlainForest, options: TreeliteOptions = {}): Uint8Array {
  const { single = false, link = "identity", averages = false, comparison = "<" } = options;
  const { features, groups, trees } = forest;
  const width = widthOf(trees[0]!);
  const parts: Buffer[] = [];
  const put = (size: number, write: (buffer: Buffer) => void) => {
    const buffer = Buffer.alloc(size);
    write(buffer);
    parts.push(buffer);
  };
  const int32 = (value: number) => put(4, (buffer) => buffer.writeInt32LE(value));
  const uint8 = (value: number) => put(1, (buffer) => buffer.writeUInt8(value));
  const uint64 = (value: number) => put(8, (buffer) => buffer.writeBigUInt64LE(BigInt(value)));
  const float32 = (value: number) => put(4, (buffer) => buffer.writeFloatLE(value));
  const bytes = (values: ArrayBufferView & { readonly length: number }) => {
    uint64(values.length);
    parts.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength));
  };
  const reals = (values: readonly number[]) =>
    bytes(single ? Float32Array.from(values) : Float64Array.from(values));
  const places = (values: readonly number[]) => bytes(BigUint64Array.from(values, BigInt));
  const text = (value: string) => bytes(Buffer.from(value));
  for (const part of [4, 1, 2]) int32(part);
  uint8(single ? 2 : 3);
  uint8(single ? 2 : 3);
  uint64(trees.length);
  int32(features);
  uint8(options.task ?? (groups > 1 ? 2 : 1));
  uint8(averages ? 1 : 0);
  int32(1);
  bytes(Int32Array.of(groups));
  bytes(Int32Array.of(1, width));
  bytes(new Int32Array(trees.length));
  bytes(Int32Array.from(trees, (_, i) => (width > 1 ? -1 : i % groups)));
  text(link);
  float32(1);
  float32(1);
  bytes(Float64Array.from(options.base ?? new Array<number>(groups).fill(0)));
  text("{}");
  int32(0);
  const mirrored = comparison.startsWith(">");
  for (const tree of trees) {
    const { nodes, left, right } = nodesOf(tree);
    const isSplit = nodes.map((node) => !("leaf" in node));
    const categoriesOf = nodes.map((node) => ("leaf" in node ? [] : [...(node.categories ?? [])]));
    const isNumerical = nodes.map((node) => !("leaf" in node) && node.categories === undefined);
    const turned = isNumerical.map((numerical) => numerical && mirrored);
    int32(nodes.length);
    uint8(categoriesOf.some((one) => one.length > 0) ? 1 : 0);
    bytes(Int8Array.from(nodes, (_, i) => (isNumerical[i] ? 1 : isSplit[i] ? 2 : 0)));
    bytes(Int32Array.from(nodes, (_, i) => (turned[i] ? right[i]! : left[i]!)));
    bytes(Int32Array.from(nodes, (_, i) => (turned[i] ? left[i]! : right[i]!)));
    bytes(Int32Array.from(nodes, (node) => ("leaf" in node ? -1 : node.feature)));
    bytes(
      Uint8Array.from(nodes, (node, i) => (!("leaf" in node) && node.missingGoLeft !== turned[i] ? 1 : 0)),
    );
    reals(nodes.map((node) => ("leaf" in node && width === 1 ? node.leaf[0]! : 0)));
    reals(nodes.map((node) => ("leaf" in node ? 0 : node.threshold)));
    bytes(
      Int8Array.from(isNumerical, (numerical) =>
        numerical ? { "<": 2, "<=": 3, ">": 4, ">=": 5 }[comparison] : 0,
      ),
    );
    bytes(new Uint8Array(nodes.length));
    const vectors = nodes.map((node) => ("leaf" in node && width > 1 ? [...node.leaf] : []));
    reals(vectors.flat());
    segments(vectors).forEach(places);
    bytes(Uint32Array.from(categoriesOf.flat()));
    segments(categoriesOf).forEach(places);
    places([]);
    bytes(new Uint8Array());
    bytes(Float64Array.from(nodes, ({ cover }) => cover));
    bytes(new Uint8Array(nodes.length).fill(1));
    bytes(new Float64Array());
    bytes(new Uint8Array());
    int32(0);
    int32(0);
  }
  return new Uint8Array(Buffer.concat(parts));
}

/** Where each list begins and ends in all of them together. */
function segments(lists: readonly (readonly number[])[]): number[][] {
  let end = 0;
  const ends = lists.map((list) => {
    end += list.length;
    return end;
  });
  return [ends.map((one, i) => one - lists[i]!.length), ends];
}

function widthOf(node: PlainNode): number {
  return "leaf" in node ? node.leaf.length : widthOf(node.left);
}
