import { errorFor, type ModelConfig, type Shape, type TypedArray } from "@tritonjs/protocol";

/** A shape for which one CUDA graph is captured, and the batches that it may run: one `graph_spec` of Triton. */
interface GraphSpec {
  /** Rows of the graph; 0 for a model that does not batch. */
  readonly batchSize: number;
  /** Fewest rows of a batch that is padded to the rows of the graph. */
  readonly lowestBatchSize: number;
  /** Dims of inputs. Inputs that are not named may have any, and are not padded inside of a row. */
  readonly inputs: ReadonlyMap<string, GraphDims>;
}

/** Dims of one input of a graph, without the batch axis. A ragged or computed input has all its dims here. */
interface GraphDims {
  /** Dims that the graph is captured with, to which an input is padded. */
  readonly dims: Shape;
  /** Smallest dims of an input that is padded. */
  readonly lowest: Shape;
}

/** Batch sizes of a model that names no graphs and has no batcher. */
const DEFAULT_BATCH_SIZES = [1, 2, 3, 4, 6, 8, 12, 16];

/**
 * Reads the graphs of a model from `optimization.cuda.graph_spec`. A model without any gets those that Triton captures:
 * for one row, the preferred batch sizes and the largest batch, or for small batches if it has no batcher.
 *
 * @param inputs names of the inputs, in the order of the model
 * @returns the graphs in the order in which Triton tries them: by rows, and then by the dims of one input after another
 * @throws TritonError INVALID_ARG for a graph that cannot be, with Triton's text
 */
export function graphSpecs(config: ModelConfig, inputs: readonly string[]): readonly GraphSpec[] {
  const { maxBatchSize, optimization } = config;
  const given = optimization?.cuda?.graphSpec ?? [];
  if (given.length === 0) {
    return defaultBatchSizes(config).map((batchSize) => ({
      batchSize,
      lowestBatchSize: batchSize,
      inputs: new Map(),
    }));
  }
  const specs = given.map(
    ({ batchSize, input, graphLowerBound: lower = { batchSize, input } }): GraphSpec => {
      checkBatchSizes(maxBatchSize, batchSize, lower.batchSize);
      const dims = new Map<string, GraphDims>();
      for (const [name, { dim }] of Object.entries(input)) {
        const lowest = lower.input[name]?.dim;
        checkDims(name, dim, lowest);
        dims.set(name, { dims: dim, lowest });
      }
      return { batchSize, lowestBatchSize: lower.batchSize, inputs: dims };
    },
  );
  specs.sort((a, b) => compareSpecs(a, b, inputs));
  // Of two for the same shape, only the first of the configuration is captured.
  return specs.filter((spec, i) => i === 0 || compareSpecs(specs[i - 1]!, spec, inputs) !== 0);
}

function compareSpecs(a: GraphSpec, b: GraphSpec, inputs: readonly string[]): number {
  if (a.batchSize !== b.batchSize) return a.batchSize - b.batchSize;
  for (const name of inputs) {
    const [one, other] = [a.inputs.get(name)?.dims, b.inputs.get(name)?.dims];
    // A graph for any dims comes after those that name them.
    if (one === undefined || other === undefined) {
      if (one !== other) return one === undefined ? 1 : -1;
      continue;
    }
    const axis = one.findIndex((size, i) => size !== other[i]);
    if (axis >= 0) return one[axis]! - (other[axis] ?? 0);
    if (one.length !== other.length) return one.length - other.length;
  }
  return 0;
}

function defaultBatchSizes({ maxBatchSize, dynamicBatching, sequenceBatching }: ModelConfig): number[] {
  if (maxBatchSize === 0) return [0];
  const preferred = dynamicBatching?.preferredBatchSize ?? sequenceBatching?.oldest?.preferredBatchSize;
  const sizes = preferred === undefined ? DEFAULT_BATCH_SIZES : [1, ...preferred];
  return [...new Set([...sizes, maxBatchSize])].filter((size) => size <= maxBatchSize).sort((a, b) => a - b);
}

function checkBatchSizes(maxBatchSize: number, batchSize: number, lowest: number): void {
  const isPossible = (size: number) => size >= 1 && size <= maxBatchSize;
  if (maxBatchSize === 0 && (batchSize !== 0 || lowest !== 0)) {
    throw errorFor("INVALID_CONFIG", "graph spec expects 'batch_size' to be 0 if 'max_batch_size' is 0");
  }
  if (maxBatchSize > 0 && !(isPossible(batchSize) && isPossible(lowest))) {
    const text = `graph spec expects 'batch_size' to be >= 1 and <= ${maxBatchSize}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  if (lowest > batchSize) {
    const text = "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'";
    throw errorFor("INVALID_CONFIG", text);
  }
}

function checkDims(name: string, dims: Shape, lowest: Shape | undefined): asserts lowest is Shape {
  if (lowest === undefined) {
    throw errorFor("INVALID_CONFIG", `graph lower bound spec expects shape for input '${name}'`);
  }
  if (lowest.length !== dims.length) {
    const text = `graph lower bound spec expects to have '${dims.length} dimensions, got ${lowest.length}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  for (const [axis, size] of dims.entries()) {
    if (size < 0 || lowest[axis]! < 0) {
      throw errorFor("INVALID_CONFIG", `graph spec expects input '${name}' to have dimension >= 0`);
    }
    if (lowest[axis]! > size) {
      const text = `graph lower bound spec expects input '${name}' to have dimension <= ${size}`;
      throw errorFor("INVALID_CONFIG", text);
    }
  }
}

/**
 * The graph for a batch: the first whose rows and dims are at least those of the batch, and whose lower bound is at
 * most those. Undefined if none fits.
 *
 * @param specs graphs in the order of {@link graphSpecs}, so one of exactly the batch comes before any other
 * @param rows rows of the batch; 0 for a model that does not batch
 * @param dimsOf dims of an input without the batch axis
 */
export function graphFor(
  specs: readonly GraphSpec[],
  rows: number,
  dimsOf: (input: string) => Shape | undefined,
): GraphSpec | undefined {
  return specs.find(({ batchSize, lowestBatchSize, inputs }) => {
    if (rows > batchSize || rows < lowestBatchSize) return false;
    for (const [name, { dims, lowest }] of inputs) {
      const given = dimsOf(name);
      if (given?.length !== dims.length) return false;
      if (given.some((size, axis) => size > dims[axis]! || size < lowest[axis]!)) return false;
    }
    return true;
  });
}

/** Shapes of the batches that the CUDA graphs of one model run. */
export class CudaGraphs {
  readonly #specs: readonly GraphSpec[];
  readonly #batches: boolean;
  /** Inputs without the batch axis of a batching model. */
  readonly #ownShapes: ReadonlySet<string>;
  /** Batch inputs that count up: further entries repeat the last one. */
  readonly #sums: ReadonlySet<string>;

  /**
   * @param inputs names of the inputs, in the order of the model
   * @throws TritonError INVALID_ARG for a graph that cannot be
   */
  constructor(config: ModelConfig, inputs: readonly string[]) {
    this.#specs = graphSpecs(config, inputs);
    this.#batches = config.maxBatchSize > 0;
    const own = config.input.filter(
      ({ allowRaggedBatch, isShapeTensor }) => allowRaggedBatch || isShapeTensor,
    );
    const targets = config.batchInput.flatMap(({ targetName }) => targetName);
    this.#ownShapes = new Set([...own.map(({ name }) => name), ...targets]);
    const sums = config.batchInput.filter(({ kind }) => kind.startsWith("BATCH_ACCUMULATED_ELEMENT_COUNT"));
    this.#sums = new Set(sums.flatMap(({ targetName }) => targetName));
  }

  /** The graph for a batch of that number of rows; undefined if none fits. */
  for(rows: number, shapeOf: (input: string) => Shape | undefined): GraphSpec | undefined {
    const dimsOf = (input: string) => (this.#hasRows(input) ? shapeOf(input)?.slice(1) : shapeOf(input));
    return graphFor(this.#specs, this.#batches ? rows : 0, dimsOf);
  }

  /** Shape to which an input is padded for a graph. */
  paddedShape(input: string, shape: Shape, { batchSize, inputs }: GraphSpec): Shape {
    const named = inputs.get(input)?.dims;
    if (!this.#hasRows(input)) return named ?? shape;
    return shape.length === 0 ? shape : [batchSize, ...(named ?? shape.slice(1))];
  }

  /** A batch input with entries for the rows that are added, as Triton fills them; undefined for any other input. */
  paddedEntries(input: string, elements: TypedArray, count: number): TypedArray | undefined {
    if (!this.#sums.has(input) || elements.length >= count) return undefined;
    const padded = new (elements.constructor as Int32ArrayConstructor)(count).fill(Number(elements.at(-1)));
    padded.set(elements as Int32Array);
    return padded;
  }

  #hasRows(input: string): boolean {
    return this.#batches && !this.#ownShapes.has(input);
  }
}
