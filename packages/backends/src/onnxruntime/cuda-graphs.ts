import { errorFor, type ModelConfig, type Shape } from "@tritonjs/protocol";

/** A shape for which one CUDA graph is captured, and the batches that it may run: one `graph_spec` of Triton. */
export interface GraphSpec {
  /** Rows of the graph; 0 for a model that does not batch. */
  readonly batchSize: number;
  /** Fewest rows of a batch that is padded to the rows of the graph. */
  readonly lowestBatchSize: number;
  /** Dims of inputs without the batch axis. Inputs that are not named may have any. */
  readonly inputs: ReadonlyMap<string, readonly number[]>;
}

/** Batch sizes of a model that names no graphs and has no batcher. */
const DEFAULT_BATCH_SIZES = [1, 2, 3, 4, 6, 8, 12, 16];

/**
 * Reads the graphs of a model from `optimization.cuda.graph_spec`. A model without any gets those that Triton captures:
 * for one row, the preferred batch sizes and the largest batch, or for small batches if it has no batcher.
 *
 * @throws TritonError INVALID_ARG for a graph that cannot be, with Triton's text
 */
export function graphSpecs(config: ModelConfig): readonly GraphSpec[] {
  const { maxBatchSize, optimization } = config;
  const given = optimization?.cuda?.graphSpec ?? [];
  if (given.length === 0) {
    return defaultBatchSizes(config).map((batchSize) => ({
      batchSize,
      lowestBatchSize: batchSize,
      inputs: new Map(),
    }));
  }
  return given.map(({ batchSize, input, graphLowerBound: lower = { batchSize, input } }) => {
    checkBatchSizes(maxBatchSize, batchSize, lower.batchSize);
    for (const [name, { dim }] of Object.entries(input)) checkDims(name, dim, lower.input[name]?.dim);
    return {
      batchSize,
      lowestBatchSize: lower.batchSize,
      inputs: new Map(Object.entries(input).map(([name, { dim }]) => [name, dim])),
    };
  });
}

/** Names the inputs whose `graph_lower_bound` is below the graph inside of a row, where nothing is padded. */
export function unpaddedInputs({ optimization }: ModelConfig): readonly string[] {
  const names = (optimization?.cuda?.graphSpec ?? []).flatMap(({ input, graphLowerBound }) =>
    Object.entries(graphLowerBound?.input ?? {})
      .filter(([name, { dim }]) => dim.some((size, axis) => size !== input[name]?.dim[axis]))
      .map(([name]) => name),
  );
  return [...new Set(names)];
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

function checkDims(name: string, dims: readonly number[], lowest: readonly number[] | undefined): void {
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
 * The graph for a batch: the one of exactly its rows, or else the smallest one that the batch may be padded to.
 * Undefined if none fits.
 *
 * @param rows rows of the batch; 0 for a model that does not batch
 * @param dimsOf dims of an input without the batch axis
 */
export function graphFor(
  specs: readonly GraphSpec[],
  rows: number,
  dimsOf: (input: string) => Shape | undefined,
): GraphSpec | undefined {
  let best: GraphSpec | undefined;
  for (const spec of specs) {
    if (rows > spec.batchSize || (rows < spec.lowestBatchSize && rows !== spec.batchSize)) continue;
    if (best !== undefined && best.batchSize <= spec.batchSize) continue;
    const fits = [...spec.inputs].every(([name, dims]) => {
      const given = dimsOf(name);
      return given?.length === dims.length && given.every((size, axis) => size === dims[axis]);
    });
    if (fits) best = spec;
  }
  return best;
}
