import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Backend, type Executor, type TypedBackend, workerExecutor } from "@tritonjs/core/backend";
import { completeStep, inlineRequests, wrongParameter } from "@tritonjs/core/internal";
import {
  assertOptions,
  type DataType,
  errorFor,
  type ModelConfig,
  type TensorSpec,
} from "@tritonjs/protocol";
import { turns } from "../turns.js";
import { openTokenizer, type TokenizerData } from "./token-worker.js";
import {
  ISOLATION,
  planOfModel,
  planTokenizer,
  TOKENIZER_OPTION_TYPES,
  TOKENIZER_PARAMETERS,
  type TokenizerOptions,
  type TokenizerPlan,
} from "./tokenizer-options.js";

/** Data type of the tokens with the options `O`. */
type TokensOf<O extends TokenizerOptions> = O extends { readonly dtype: infer D extends DataType }
  ? D
  : "INT64";

/** A tensor of texts. */
type TextSpec<N extends string> = {
  readonly name: N;
  readonly dtype: "BYTES";
  readonly shape: readonly [1];
};

/** A tensor of tokens, as many as a text has. */
type TokenSpec<N extends string, D extends DataType> = {
  readonly name: N;
  readonly dtype: D;
  readonly shape: readonly [-1];
};

/** The direction of the options `O`; not one of the two if the compiler does not know it. */
type DirectionOf<O extends TokenizerOptions> = unknown extends O["direction"] ? "encode" : O["direction"];

/** Inputs of {@link tokenizer} with the options `O`; any if the compiler does not know the direction. */
type TokenizerInputs<O extends TokenizerOptions> =
  DirectionOf<O> extends "encode"
    ? O extends { readonly pair: true } | { readonly pairTemplate: string }
      ? readonly [TextSpec<"text">, TextSpec<"text_pair">]
      : readonly [TextSpec<"text">]
    : DirectionOf<O> extends "decode"
      ? readonly [TokenSpec<"ids", TokensOf<O>>]
      : readonly TensorSpec[];

/** Outputs of {@link tokenizer} with the options `O`; any if the compiler does not know the direction. */
type TokenizerOutputs<O extends TokenizerOptions> =
  DirectionOf<O> extends "encode"
    ? readonly [
        TokenSpec<"input_ids", TokensOf<O>>,
        TokenSpec<"attention_mask", TokensOf<O>>,
        TokenSpec<"token_type_ids", TokensOf<O>>,
      ]
    : DirectionOf<O> extends "decode"
      ? readonly [TextSpec<"text">]
      : readonly TensorSpec[];

/**
 * A backend that makes the tokens of texts that a model reads, or texts of tokens, by the `tokenizer.json` of the model.
 * `bind` needs no specifications. To encode, the input is `text` (BYTES `[rows, 1]`), with `pair` also `text_pair`; the
 * outputs are `input_ids`, `attention_mask` and `token_type_ids` (INT64 `[rows, tokens]`). To decode, the input is `ids`
 * (INT64 `[rows, tokens]`), and the output `text` (BYTES `[rows, 1]`).
 *
 * Each instance is a worker thread. `isolation: "inline"` in the instance group works on the caller's thread. A bad text
 * fails its own request with INVALID_ARG.
 *
 * @throws TritonError INVALID_ARG for invalid options, NOT_FOUND without `tokenizer.json`
 * @example
 * ```ts
 * triton.bind({
 *   modelName: "tokens",
 *   inferFunc: tokenizer({ directory: "models/bert", maxLength: 128 }),
 * });
 * ```
 */
export function tokenizer<const O extends TokenizerOptions>(
  options: O,
): TypedBackend<TokenizerInputs<O>, TokenizerOutputs<O>> {
  assertOptions("tokenizer()", options, TOKENIZER_OPTION_TYPES);
  const { directory } = options;
  const path = directory instanceof URL ? fileURLToPath(directory) : directory;
  return tokenizerBackend(planTokenizer({ ...options, directory: path }));
}

function tokenizerBackend(plan: TokenizerPlan, isolation: "worker" | "inline" = "worker"): Backend {
  findTokenizer(plan.directory);
  const { inputs, outputs } = tensorsOf(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "tokenizer",
    platform: "",
    isolations: ["worker", "inline"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    completeConfig: (config) => completeStep(config, inputs, outputs),
    createExecutor: (context) => {
      const data = dataOf(plan, context.info.modelConfig);
      if ((context.hosting.isolation ?? isolation) === "inline") return inlineTokenizer(data);
      const entry = new URL("./token-worker.js", import.meta.url);
      return workerExecutor({ entry, data, interruptible: true, reusesThread: true }, context);
    },
  };
}

function dataOf(plan: TokenizerPlan, { maxBatchSize, input, output }: ModelConfig): TokenizerData {
  const hasBatch = maxBatchSize > 0;
  return {
    plan,
    hasBatch,
    hasLines: input.some(({ dims }) => isSeveral(dims)),
    textAxes: output[0]!.dims.length + (hasBatch ? 1 : 0),
  };
}

/** True for dims of more than one text. */
function isSeveral(dims: readonly number[]): boolean {
  return dims.length !== 1 || dims[0] !== 1;
}

/** @throws TritonError NOT_FOUND without the file */
function findTokenizer(directory: string): void {
  const path = join(directory, "tokenizer.json");
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) return;
  throw errorFor(
    "MODEL_FILE_MISSING",
    `cannot open the tokenizer: expected the file ${path}, as Hugging Face's libraries save it, got none`,
  );
}

/** The tensors of a plan, without the batch axis. */
function tensorsOf({ direction, dtype, inputNames, inputDims, outputNames }: TokenizerPlan) {
  const encodes = direction === "encode";
  const inputs: readonly TensorSpec[] = inputNames.map((name, i) => ({
    name,
    dtype: encodes ? "BYTES" : dtype,
    shape: inputDims[i]!,
  }));
  const lines = inputDims.some(isSeveral) ? [-1] : [];
  const outputs: readonly TensorSpec[] = outputNames.map((name) => ({
    name,
    dtype: encodes ? dtype : "BYTES",
    shape: encodes ? [...lines, -1] : inputDims[0]!.length > 1 ? inputDims[0]!.slice(0, -1) : [1],
  }));
  return { inputs, outputs };
}

/** Works on this thread in turns of the event loop, one request after another. */
function inlineTokenizer(data: TokenizerData): Executor {
  let answer: Awaited<ReturnType<typeof openTokenizer>>;
  return inlineRequests(({ inputs, signal }) => turns.run(answer(inputs), signal), {
    start: async () => {
      answer = await openTokenizer(data);
    },
  });
}

/**
 * The backend `tokenizer` for models of a repository. `tokenizer.json` is in the version's directory. Its options are
 * parameters with the same names in snake case. The parameter `isolation` is `worker` or `inline`.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values, NOT_FOUND without `tokenizer.json`
 */
export const tokenizerRepositoryBackend = TOKENIZER_PARAMETERS.declaredBy((source) => {
  const { name } = source;
  const isolation = TOKENIZER_PARAMETERS.text(source, ISOLATION);
  if (isolation !== undefined && isolation !== "worker" && isolation !== "inline") {
    throw wrongParameter(name, ISOLATION, "worker or inline", isolation);
  }
  return tokenizerBackend(planOfModel(source), isolation);
});
