import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorFor, Tensor, type TritonError } from "@tritonjs/protocol";
import { makeNode, makeTensor } from "../onnx-graph/graph-editor.js";
import {
  ATTRIBUTE,
  type AttributeMessage,
  ELEMENT,
  encodeModel,
  type NodeMessage,
  type TensorMessage,
  type ValueMessage,
} from "../onnx-graph/onnx-messages.js";
import { replaceFile } from "../onnx-graph/onnx-model.js";
import type { ImportPath, ModelImporter } from "./model-importer.js";
import { ModelRunner, type Sample } from "./model-runner.js";

/** A step of a pipeline, as `sklearn_to_json.py` writes it. */
type Step =
  | { readonly op: "affine"; readonly offset: number[]; readonly factor: number[] }
  | { readonly op: "linear"; readonly offset: number[]; readonly factor: number[] }
  | { readonly op: "clip"; readonly low: number; readonly high: number }
  | { readonly op: "normalize"; readonly norm: "l1" | "l2" | "max" }
  | { readonly op: "binarize"; readonly threshold: number }
  | { readonly op: "impute"; readonly values: number[] }
  | { readonly op: "matrix"; readonly factor: number[][]; readonly offset?: number[] }
  | { readonly op: "powers"; readonly powers: number[][] }
  | { readonly op: "columns"; readonly columns: number[] }
  | { readonly op: "one_hot"; readonly categories: Category[][]; readonly dropped: (number | null)[] | null }
  | { readonly op: "ordinal"; readonly categories: Category[][]; readonly unknown: number }
  | { readonly op: "union"; readonly parts: { readonly columns: number[] | null; readonly steps: Step[] }[] }
  | { readonly op: "activation"; readonly name: "logistic" | "tanh" | "relu" }
  | { readonly op: "regression" }
  | {
      readonly op: "classes";
      readonly labels: (string | number)[];
      readonly probabilities: ProbabilityRule | null;
    };

type Category = string | number;

/** How decisions become probabilities; `huber` cuts them off at -1 and 1. */
type ProbabilityRule = "sigmoid" | "softmax" | "huber";

/** A model as `sklearn_to_json.py` writes it. */
export interface SklearnFile {
  readonly tritonjs_sklearn: number;
  readonly model: string;
  readonly features: number;
  readonly names: string[];
  /** Positions of the features that are texts. */
  readonly texts: number[];
  readonly steps: Step[];
  readonly samples: {
    readonly rows: (number | string)[][];
    readonly predicted?: (number | string | number[])[];
    readonly probabilities?: number[][];
    readonly scores?: number[][];
    readonly transformed?: number[][];
  };
}

/** Largest difference to the answers of scikit-learn, as a share of parts above 1. */
const TOLERANCE = 1e-5;

/**
 * Models of scikit-learn that `sklearn_to_json.py` wrote. They compute in double precision, as scikit-learn does, and are
 * checked with the rows and answers of the file.
 */
export const sklearnImporter: ModelImporter = {
  format: "scikit-learn, as sklearn_to_json.py writes it",
  recognizes: ({ head, path }: ImportPath) =>
    path.endsWith(".json") && /^\s*\{\s*"tritonjs_sklearn"/.test(head.toString("latin1")),
  async toOnnx(path, folder) {
    const file = parse(await readFile(path, "utf8"), path);
    let built: SklearnGraph;
    try {
      built = new SklearnGraph(file);
    } catch (error) {
      throw faulty(path, (error as Error).message, error);
    }
    const target = join(folder, `${file.model}.onnx`);
    await replaceFile(target, [built.bytes()]);
    await check(target, path, file, built);
    return target;
  },
};

const faulty = (path: string, text: string, cause?: unknown): TritonError =>
  errorFor("INVALID_MODEL", `cannot read the scikit-learn model '${path}': ${text}`, { cause });

function parse(text: string, path: string): SklearnFile {
  let file: SklearnFile;
  try {
    file = JSON.parse(text) as SklearnFile;
  } catch (error) {
    throw faulty(
      path,
      `expected whole JSON, got text that ends or breaks: ${(error as Error).message}`,
      error,
    );
  }
  if (file.tritonjs_sklearn === 1) return file;
  throw faulty(
    path,
    `expected format 1, got ${String(file.tritonjs_sklearn)}; write it by the script of this version`,
  );
}

/** Runs the rows of a file, and compares with the answers that scikit-learn gave. */
async function check(onnx: string, path: string, file: SklearnFile, { inputs }: SklearnGraph): Promise<void> {
  const { rows, predicted, probabilities, scores, transformed } = file.samples;
  const runner = await ModelRunner.open(onnx);
  try {
    const results = await runner.run(sampleOf(inputs, rows));
    const wanted: readonly (readonly [string, readonly unknown[] | undefined])[] = [
      [file.steps.at(-1)?.op === "classes" ? "label" : "prediction", predicted],
      ["probabilities", probabilities],
      ["scores", scores],
      ["transformed", transformed],
    ];
    for (const [name, values] of wanted) {
      const result = results.get(name);
      if (values === undefined || result === undefined) continue;
      const expected = values.flat() as (number | string)[];
      const given = Array.from(result.elements as ArrayLike<unknown>, textOrNumber);
      const row = expected.findIndex((value, i) => !isSame(given[i], value));
      if (row < 0 && given.length === expected.length) continue;
      const text = `output '${name}' of the converted model: expected ${expected[row]}, as scikit-learn answers, got ${given[row]}`;
      throw faulty(path, text);
    }
  } finally {
    await runner.close();
  }
}

const textOrNumber = (value: unknown): string | number =>
  value instanceof Uint8Array ? Buffer.from(value).toString() : Number(value);

function isSame(given: string | number | undefined, expected: string | number): boolean {
  if (typeof expected === "string" || typeof given !== "number") return given === expected;
  return Math.abs(given - expected) <= TOLERANCE * Math.max(1, Math.abs(expected));
}

/** An input of a converted model: all features, or one of them. */
interface FeatureInput {
  readonly name: string;
  readonly isText: boolean;
  /** Positions of the features in a row. */
  readonly positions: readonly number[];
}

function sampleOf(inputs: readonly FeatureInput[], rows: readonly (readonly (number | string)[])[]): Sample {
  return new Map(
    inputs.map(({ name, isText, positions }) => {
      const values = rows.flatMap((row) => positions.map((position) => row[position]!));
      const shape = [rows.length, positions.length];
      const tensor = isText
        ? Tensor.fromElements(
            "BYTES",
            shape,
            values.map((value) => Buffer.from(String(value))),
          )
        : Tensor.fromElements("FP64", shape, Float64Array.from(values, Number));
      return [name, tensor] as const;
    }),
  );
}

/** Rows of numbers or of texts inside the graph. */
interface Columns {
  readonly value: string;
  readonly width: number;
  readonly isText: boolean;
}

/** Builds the graph of a pipeline. Numbers have double precision throughout. */
class SklearnGraph {
  readonly inputs: readonly FeatureInput[];
  readonly #nodes: NodeMessage[] = [];
  readonly #constants: TensorMessage[] = [];
  readonly #outputs: ValueMessage[] = [];
  #count = 0;

  constructor(file: SklearnFile) {
    const { features, names, texts, steps } = file;
    const nameOf = (position: number) => names[position] ?? `x${position}`;
    // Tensors have one type, so features of several types are inputs of their own.
    this.inputs =
      texts.length === 0
        ? [{ name: "X", isText: false, positions: Array.from({ length: features }, (_, i) => i) }]
        : Array.from({ length: features }, (_, i) => ({
            name: nameOf(i),
            isText: texts.includes(i),
            positions: [i],
          }));
    const columns = this.inputs.map(({ name, isText, positions }) => ({
      value: name,
      width: positions.length,
      isText,
    }));
    const end = this.#run(steps, columns);
    if (this.#outputs.length === 0) this.#output("transformed", this.#joined(end), ELEMENT.DOUBLE);
  }

  bytes(): Uint8Array {
    const dims = (width: number) => [{ dimParam: "rows" }, { dimValue: width }];
    return encodeModel({
      irVersion: 8,
      producerName: "tritonjs",
      opsetImport: [
        { domain: "", version: 17 },
        { domain: ML, version: 2 },
      ],
      metadataProps: [],
      functions: [],
      graph: {
        name: "sklearn",
        node: this.#nodes,
        initializer: this.#constants,
        input: this.inputs.map(({ name, isText, positions }) => ({
          name,
          type: {
            tensorType: {
              elemType: isText ? ELEMENT.STRING : ELEMENT.DOUBLE,
              shape: { dim: dims(positions.length) },
            },
          },
        })),
        output: this.#outputs,
        valueInfo: [],
      },
    });
  }

  /** Adds the nodes of steps. @returns what they make */
  #run(steps: readonly Step[], given: readonly Columns[]): readonly Columns[] {
    let columns = given;
    for (const step of steps) columns = this.#step(step, columns);
    return columns;
  }

  #step(step: Step, given: readonly Columns[]): readonly Columns[] {
    switch (step.op) {
      case "union":
        return step.parts.flatMap(({ columns, steps }) =>
          this.#run(steps, columns === null ? given : this.#chosen(given, columns)),
        );
      case "columns":
        return this.#chosen(given, step.columns);
      case "one_hot":
        return step.categories.map((categories, i) =>
          this.#oneHot(given, i, categories, step.dropped?.[i] ?? null),
        );
      case "ordinal":
        return step.categories.map((categories, i) => this.#ordinal(given, i, categories, step.unknown));
      default:
        return [this.#numeric(step, this.#joined(given))];
    }
  }

  #numeric(
    step: Exclude<Step, { readonly op: "union" | "columns" | "one_hot" | "ordinal" }>,
    columns: Columns,
  ): Columns {
    const { value, width } = columns;
    const made = (name: string, size = width): Columns => ({ value: name, width: size, isText: false });
    switch (step.op) {
      case "affine":
        return made(
          this.#node("Div", [this.#node("Sub", [value, this.#row(step.offset)]), this.#row(step.factor)]),
        );
      case "linear":
        return made(
          this.#node("Add", [this.#node("Mul", [value, this.#row(step.factor)]), this.#row(step.offset)]),
        );
      case "clip":
        return made(this.#clip(value, step.low, step.high));
      case "normalize":
        return made(this.#normalized(value, step.norm));
      case "binarize":
        return made(this.#double(this.#node("Greater", [value, this.#number(step.threshold)])));
      case "impute":
        return made(this.#node("Where", [this.#node("IsNaN", [value]), this.#row(step.values), value]));
      case "matrix":
        return this.#matrix(columns, step.factor, step.offset);
      case "powers":
        return this.#powers(columns, step.powers);
      case "activation":
        return made(this.#node(ACTIVATIONS[step.name], [value]));
      case "regression":
        this.#output("prediction", columns, ELEMENT.DOUBLE);
        return columns;
      case "classes":
        this.#classes(columns, step.labels, step.probabilities);
        return columns;
    }
  }

  #matrix({ value, width }: Columns, factor: readonly number[][], offset?: readonly number[]): Columns {
    if (factor.length !== width)
      throw new RangeError(`expected a matrix of ${width} rows, got ${factor.length}`);
    const columns = factor[0]?.length ?? 0;
    const matrix = this.#constant([factor.length, columns], Float64Array.from(factor.flat()));
    const product = this.#node("MatMul", [value, matrix]);
    const sum = offset === undefined ? product : this.#node("Add", [product, this.#row(offset)]);
    return { value: sum, width: columns, isText: false };
  }

  /** Products of powers: each column as factors, which the powers repeat. */
  #powers(given: Columns, powers: readonly number[][]): Columns {
    const made = powers.map((exponents) => {
      const factors = exponents.flatMap((count, position) => Array.from({ length: count }, () => position));
      const [first, ...rest] = factors;
      // The bias column is 1 in each row.
      if (first === undefined) {
        const zero = this.#node("Mul", [this.#column(given, 0), this.#number(0)]);
        return this.#node("Add", [zero, this.#number(1)]);
      }
      return rest.reduce(
        (product, position) => this.#node("Mul", [product, this.#column(given, position)]),
        this.#column(given, first),
      );
    });
    return { value: this.#node("Concat", made, { axis: 1 }), width: powers.length, isText: false };
  }

  readonly #columnValues = new Map<string, string>();

  #column({ value }: Columns, position: number): string {
    const key = `${value}:${position}`;
    const known = this.#columnValues.get(key);
    if (known !== undefined) return known;
    const made = this.#node("Gather", [value, this.#indices([position])], { axis: 1 });
    this.#columnValues.set(key, made);
    return made;
  }

  #normalized(value: string, norm: "l1" | "l2" | "max"): string {
    const sizes = this.#node("Abs", [value]);
    const size =
      norm === "max"
        ? this.#node("ReduceMax", [sizes], { axes: [1], keepdims: 1 })
        : norm === "l1"
          ? this.#sum(sizes)
          : this.#node("Sqrt", [this.#sum(this.#node("Mul", [value, value]))]);
    const isZero = this.#node("Equal", [size, this.#number(0)]);
    return this.#node("Div", [value, this.#node("Where", [isZero, this.#number(1), size])]);
  }

  #oneHot(
    given: readonly Columns[],
    position: number,
    categories: readonly Category[],
    dropped: number | null,
  ): Columns {
    const [column] = this.#chosen(given, [position]);
    const kept = categories.filter((_, i) => i !== dropped);
    const matches = column!.isText
      ? this.#node("Equal", [
          this.#code(column!, categories, -1),
          this.#row(categories.flatMap((_, i) => (i === dropped ? [] : [i]))),
        ])
      : this.#node("Equal", [this.#joined([column!]).value, this.#row(kept.map(Number))]);
    return { value: this.#double(matches), width: kept.length, isText: false };
  }

  #ordinal(
    given: readonly Columns[],
    position: number,
    categories: readonly Category[],
    unknown: number,
  ): Columns {
    const [column] = this.#chosen(given, [position]);
    if (column!.isText) return { value: this.#code(column!, categories, unknown), width: 1, isText: false };
    const matches = this.#double(this.#node("Equal", [column!.value, this.#row(categories.map(Number))]));
    const codes = this.#sum(this.#node("Mul", [matches, this.#row(categories.map((_, i) => i - unknown))]));
    return { value: this.#node("Add", [codes, this.#number(unknown)]), width: 1, isText: false };
  }

  /** The position of a text among its categories. */
  #code({ value }: Columns, categories: readonly Category[], unknown: number): string {
    const output = this.#fresh();
    const node = makeNode("LabelEncoder", [value], [output], { default_int64: -1 }, ML);
    node.attribute.push(
      attribute("keys_strings", ATTRIBUTE.STRINGS, {
        strings: categories.map((one) => Buffer.from(String(one))),
      }),
      attribute("values_int64s", ATTRIBUTE.INTS, { ints: categories.map((_, i) => i) }),
    );
    this.#nodes.push(node);
    const codes = this.#double(output);
    if (unknown === -1) return codes;
    const isUnknown = this.#node("Less", [codes, this.#number(0)]);
    return this.#node("Where", [isUnknown, this.#number(unknown), codes]);
  }

  #classes(
    { value, width }: Columns,
    labels: readonly (string | number)[],
    rule: ProbabilityRule | null,
  ): void {
    const isBinary = labels.length === 2 && width === 1;
    if (!isBinary && width !== labels.length)
      throw new RangeError(`expected ${labels.length} decisions, one for each class, got ${width}`);
    const position = isBinary
      ? this.#node("Cast", [this.#node("Greater", [value, this.#number(0)])], { to: ELEMENT.INT64 })
      : this.#node("ArgMax", [value], { axis: 1, keepdims: 1 });
    const isText = typeof labels[0] === "string";
    const table = isText ? this.#texts(labels.map(String)) : this.#indices(labels.map(Number));
    // The table is a vector, so the label of each row is [rows, 1].
    const label = this.#node("Gather", [table, position], { axis: 0 });
    this.#output("label", { value: label, width: 1, isText }, isText ? ELEMENT.STRING : ELEMENT.INT64);
    if (rule === null) this.#output("scores", { value, width, isText: false }, ELEMENT.DOUBLE);
    else {
      const shares = isBinary ? this.#binaryShares(value, rule) : this.#shares(value, rule);
      this.#output("probabilities", { value: shares, width: labels.length, isText: false }, ELEMENT.DOUBLE);
    }
  }

  #binaryShares(decision: string, rule: ProbabilityRule): string {
    if (rule === "softmax") {
      const both = this.#node("Concat", [this.#node("Neg", [decision]), decision], { axis: 1 });
      return this.#node("Softmax", [both], { axis: 1 });
    }
    const second = rule === "sigmoid" ? this.#node("Sigmoid", [decision]) : this.#half(decision);
    return this.#node("Concat", [this.#node("Sub", [this.#number(1), second]), second], { axis: 1 });
  }

  #shares(decisions: string, rule: ProbabilityRule): string {
    if (rule === "softmax") return this.#node("Softmax", [decisions], { axis: 1 });
    const values = rule === "sigmoid" ? this.#node("Sigmoid", [decisions]) : this.#half(decisions);
    const total = this.#sum(values);
    // Where all are 0, all classes are equally likely.
    const isZero = this.#node("Equal", [total, this.#number(0)]);
    const ones = this.#node("Add", [this.#node("Mul", [values, this.#number(0)]), this.#number(1)]);
    const safe = this.#node("Where", [isZero, ones, values]);
    return this.#node("Div", [safe, this.#sum(safe)]);
  }

  /** The decision from -1 to 1 as a share. */
  #half(value: string): string {
    const clipped = this.#clip(value, -1, 1);
    return this.#node("Div", [this.#node("Add", [clipped, this.#number(1)]), this.#number(2)]);
  }

  #clip(value: string, low: number, high: number): string {
    return this.#node("Clip", [value, this.#number(low), this.#number(high)]);
  }

  #sum(value: string): string {
    const axes = this.#indices([1]);
    return this.#node("ReduceSum", [value, axes], { keepdims: 1 });
  }

  /** Columns by their positions, in their order; positions of one tensor together. */
  #chosen(given: readonly Columns[], positions: readonly number[]): Columns[] {
    const owners = given.flatMap((columns) =>
      Array.from({ length: columns.width }, (_, i) => ({ columns, i })),
    );
    const chosen: { readonly columns: Columns; readonly positions: number[] }[] = [];
    for (const position of positions) {
      const owner = owners[position];
      if (owner === undefined)
        throw new RangeError(`expected a column below ${owners.length}, got ${position}`);
      const last = chosen.at(-1);
      if (last?.columns === owner.columns) last.positions.push(owner.i);
      else chosen.push({ columns: owner.columns, positions: [owner.i] });
    }
    return chosen.map(({ columns, positions: own }) => {
      if (own.length === columns.width && own.every((position, i) => position === i)) return columns;
      const value = this.#node("Gather", [columns.value, this.#indices(own)], { axis: 1 });
      return { value, width: own.length, isText: columns.isText };
    });
  }

  #joined(given: readonly Columns[]): Columns {
    if (given.some(({ isText }) => isText))
      throw new RangeError("expected numbers, got columns of texts without an encoder");
    if (given.length === 1) return given[0]!;
    const value = this.#node(
      "Concat",
      given.map((one) => one.value),
      { axis: 1 },
    );
    return { value, width: given.reduce((sum, { width }) => sum + width, 0), isText: false };
  }

  #output(name: string, { value, width }: Columns, elemType: number): void {
    this.#nodes.push(makeNode("Identity", [value], [name]));
    const dim = [{ dimParam: "rows" }, { dimValue: width }];
    this.#outputs.push({ name, type: { tensorType: { elemType, shape: { dim } } } });
  }

  #node(
    opType: string,
    inputs: string[],
    attributes: Readonly<Record<string, number | readonly number[]>> = {},
  ): string {
    const output = this.#fresh();
    this.#nodes.push(makeNode(opType, inputs, [output], attributes));
    return output;
  }

  #double(value: string): string {
    return this.#node("Cast", [value], { to: ELEMENT.DOUBLE });
  }

  #row(values: readonly number[]): string {
    return this.#constant([values.length], Float64Array.from(values));
  }

  #number(value: number): string {
    return this.#constant([], Float64Array.of(value));
  }

  #constant(dims: readonly number[], data: Float64Array): string {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#constants.push(makeTensor(this.#fresh(), ELEMENT.DOUBLE, dims, bytes));
    return this.#constants.at(-1)!.name;
  }

  #indices(values: readonly number[]): string {
    const tensor = makeTensor(
      this.#fresh(),
      ELEMENT.INT64,
      [values.length],
      BigInt64Array.from(values, BigInt),
    );
    this.#constants.push(tensor);
    return tensor.name;
  }

  #texts(values: readonly string[]): string {
    const tensor = makeTensor(this.#fresh(), ELEMENT.STRING, [values.length], new Uint8Array());
    delete tensor.rawData;
    tensor.stringData = values.map((value) => Buffer.from(value));
    this.#constants.push(tensor);
    return tensor.name;
  }

  #fresh(): string {
    for (;;) {
      const name = `v${this.#count++}`;
      if (!this.inputs.some((input) => input.name === name)) return name;
    }
  }
}

/** Operators of ONNX for classical models. */
const ML = "ai.onnx.ml";

const ACTIVATIONS = { logistic: "Sigmoid", tanh: "Tanh", relu: "Relu" } as const;

function attribute(
  name: string,
  type: number,
  value: Partial<Pick<AttributeMessage, "strings" | "ints">>,
): AttributeMessage {
  return { name, type, floats: [], ints: [], strings: [], tensors: [], graphs: [], ...value };
}
