import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Backend, workerExecutor } from "@tritonjs/core/backend";
import { DeclaredParameters, ParameterReader } from "@tritonjs/core/internal";
import { assertOptions, definedMembers, errorFor, optionTypes, type TensorSpec } from "@tritonjs/protocol";
import { type CtcPlan, ctcTensors } from "./ctc-decoder.js";
import { assertInteger, assertOneOf, completeTensors, mediaOptionError } from "./media-parameters.js";
import { readArpa } from "./ngram-model.js";
import { readHotWords, readVocabulary } from "./read-units.js";

/** Options of {@link ctcDecoder}. */
export interface CtcDecoderOptions {
  /** The units by their ids, or a file with a line for each: the unit and its id. Unit 0 is the blank of CTC. */
  readonly vocabulary: string | URL | readonly string[];
  /**
   * `prefix_beam` searches the likeliest texts; `greedy` takes the likeliest unit of each frame.
   *
   * @default "prefix_beam"
   */
  readonly method?: "prefix_beam" | "greedy";
  /** Number of texts that the search follows. @default 10 */
  readonly beam?: number;
  /** The likeliest units of a frame are tried until they have this probability in sum. @default 0.9999 */
  readonly cutoffProb?: number;
  /**
   * Words that are likelier than the model knows: what each occurrence adds to the score of a text, in logarithms of
   * probability; or a file with lines of `word: bonus`.
   */
  readonly hotWords?: string | URL | Readonly<Record<string, number>>;
  /**
   * Language model: an ARPA file with n-grams of words, of whatever length. Each word adds its logarithm of probability
   * to the score of a text, times `ngramWeight`. Not with the method `greedy`.
   *
   * @default none
   */
  readonly ngram?: string | URL;
  /** Weight of the language model. @default 0.5 */
  readonly ngramWeight?: number;
  /** Amount that each word adds to the score of a text with a language model, which makes long texts unlikely. @default 1 */
  readonly wordBonus?: number;
  /**
   * Model that scores the texts again, with the tensors of WeNet's `decoder`. The step then has the input `encoder_out`.
   *
   * @default none
   */
  readonly rescorer?: string;
  /** True for the output `WORDS` (BYTES [1]): a JSON list of words with the seconds of their start and end. @default false */
  readonly words?: boolean;
  /** Seconds from one frame to the next, for the times of words. @default 0.04 */
  readonly frameSeconds?: number;
  /**
   * True for streams: each request of a sequence has the next frames, and gets the text so far. The configuration has
   * the state `past` to `present`, BYTES [1].
   *
   * @default false
   */
  readonly stream?: boolean;
  /** Name of the output with the texts, BYTES [1]. @default "OUTPUT0" */
  readonly outputName?: string;
}

const OPTION_TYPES = optionTypes<CtcDecoderOptions>({
  vocabulary: "any",
  method: "string",
  beam: "number",
  cutoffProb: "number",
  hotWords: "any",
  ngram: "any",
  ngramWeight: "number",
  wordBonus: "number",
  rescorer: "string",
  words: "boolean",
  frameSeconds: "number",
  stream: "boolean",
  outputName: "string",
});

/**
 * A backend that turns the likeliest units of each frame into text: the last step of speech recognition with CTC.
 * `bind` needs no specifications. The inputs are those of WeNet's model `scoring`: `batch_log_probs` (FP32
 * `[rows, frames, n]`, the largest first), `batch_log_probs_idx` (INT64, their units), and `encoder_out_lens` (INT32
 * `[rows, 1]`); with a rescorer also `encoder_out`. The output is `OUTPUT0` (BYTES `[rows, 1]`). Units that begin with
 * `▁` begin words.
 *
 * Each instance is a worker thread.
 *
 * @throws TritonError INVALID_ARG for invalid options, and for files that cannot be read
 * @example
 * ```ts
 * triton.bind({ modelName: "scoring", inferFunc: ctcDecoder({ vocabulary: "units.txt", rescorer: "decoder" }) });
 * ```
 */
export function ctcDecoder(options: CtcDecoderOptions): Backend {
  assertOptions("ctcDecoder()", options, OPTION_TYPES);
  return ctcBackend(planDecoder(options));
}

function planDecoder({
  vocabulary,
  hotWords = {},
  ngram,
  ngramWeight,
  wordBonus,
  rescorer,
  ...options
}: CtcDecoderOptions): CtcPlan {
  const plan: CtcPlan = {
    method: "prefix_beam",
    beam: 10,
    cutoffProb: 0.9999,
    words: false,
    frameSeconds: 0.04,
    stream: false,
    outputName: "OUTPUT0",
    ...options,
    rescorer,
    vocabulary: isPath(vocabulary) ? readVocabulary(pathOf(vocabulary)) : vocabulary,
    hotWords: isPath(hotWords) ? readHotWords(pathOf(hotWords)) : new Map(Object.entries(hotWords)),
    ngram: planNgram(ngram, ngramWeight, wordBonus),
  };
  assertOneOf("method", plan.method, ["prefix_beam", "greedy"]);
  assertInteger("beam", plan.beam, 1, 1000);
  if (!(plan.cutoffProb > 0 && plan.cutoffProb <= 1)) {
    throw mediaOptionError("cutoffProb", "a number above 0, up to 1", plan.cutoffProb);
  }
  if (!(plan.frameSeconds > 0)) throw mediaOptionError("frameSeconds", "a number above 0", plan.frameSeconds);
  if (plan.vocabulary.length < 2)
    throw mediaOptionError("vocabulary", "at least 2 units", plan.vocabulary.length);
  const bad = [...plan.hotWords].find(([word, bonus]) => word === "" || !Number.isFinite(bonus));
  if (bad !== undefined) throw mediaOptionError("hotWords", "words with numbers", `${bad[0]}: ${bad[1]}`);
  if (rescorer !== undefined && !plan.vocabulary.includes("<sos/eos>")) {
    throw errorFor("INVALID_OPTION", "rescorer: expected a vocabulary with the unit <sos/eos>, got none");
  }
  if (plan.method === "greedy" && plan.ngram !== undefined) {
    throw mediaOptionError("ngram", "none with the method 'greedy'", String(ngram));
  }
  if (plan.stream && (rescorer !== undefined || plan.method === "greedy")) {
    throw mediaOptionError("stream", "only with the method 'prefix_beam' and without a rescorer", true);
  }
  return plan;
}

function planNgram(
  file: CtcDecoderOptions["ngram"],
  weight: number | undefined,
  wordBonus: number | undefined,
): CtcPlan["ngram"] {
  for (const [name, value] of Object.entries({ ngramWeight: weight, wordBonus })) {
    if (value === undefined) continue;
    if (file === undefined) throw mediaOptionError(name, "none without the option 'ngram'", value);
    if (!Number.isFinite(value)) throw mediaOptionError(name, "a number", value);
  }
  if (file === undefined) return undefined;
  if (!isPath(file)) throw mediaOptionError("ngram", "a file", file);
  return { table: readArpa(pathOf(file)), weight: weight ?? 0.5, wordBonus: wordBonus ?? 1 };
}

const isPath = (value: unknown): value is string | URL => typeof value === "string" || value instanceof URL;
const pathOf = (value: string | URL) => (typeof value === "string" ? value : fileURLToPath(value));

function ctcBackend(plan: CtcPlan): Backend {
  const { inputs, outputs } = ctcTensors(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "ctc_decoder",
    platform: "",
    isolations: ["worker"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    checkConfig: ({ name, maxBatchSize, input }) => {
      if (maxBatchSize > 0 || input.length === 0) return;
      const text = `model '${name}': max_batch_size: expected at least 1, got ${maxBatchSize}`;
      throw errorFor("INVALID_CONFIG", text);
    },
    completeConfig: (config) => completeTensors(config, inputs, outputs),
    createExecutor: (context) => {
      const entry = new URL("./ctc-decoder.js", import.meta.url);
      return workerExecutor({ entry, data: plan, interruptible: true, reusesThread: true }, context);
    },
  };
}

const PARAMETERS = new DeclaredParameters({
  read: ["vocabulary", "hot_words", "hotwords_path", "ngram", "lm_path"],
  value: [
    "method",
    "beam",
    "cutoff_prob",
    "ngram_weight",
    "word_bonus",
    "rescorer",
    "words",
    "frame_seconds",
    "stream",
  ],
});

/**
 * The backend `ctc_decoder` for models of a repository. Its options are parameters with the same names in snake case;
 * files are named relative to the directory of the version or of the model. `hotwords_path` and `lm_path`, as in WeNet's
 * configurations, also name the files of hot words and of the language model.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values
 */
export const ctcRepositoryBackend = PARAMETERS.declaredBy((source) => {
  const { config, directory, versionDirectory } = source;
  const read = new ParameterReader(source, PARAMETERS);
  const file = (option: string) => {
    const path = read.text(option);
    if (path === undefined || path === "" || path === "None") return undefined;
    const places = [join(versionDirectory, path), join(directory, path)];
    return path.startsWith("/") ? path : (places.find(existsSync) ?? places[0]);
  };
  const output = config.output.find(
    ({ name, dataType }) => dataType === "TYPE_STRING" && !/^(WORDS|present)$/.test(name),
  );
  const options = definedMembers({
    vocabulary: file("vocabulary") ?? "",
    method: read.text("method") as CtcDecoderOptions["method"],
    beam: read.number("beam"),
    cutoffProb: read.number("cutoffProb"),
    hotWords: file("hotWords") ?? file("hotwordsPath"),
    ngram: file("ngram") ?? file("lmPath"),
    ngramWeight: read.number("ngramWeight"),
    wordBonus: read.number("wordBonus"),
    rescorer: read.text("rescorer"),
    words: read.flag("words") ?? (config.output.some(({ name }) => name === "WORDS") || undefined),
    frameSeconds: read.number("frameSeconds"),
    stream: read.flag("stream"),
    outputName: output?.name,
  });
  read.assertNoOthers();
  return ctcBackend(planDecoder(options as CtcDecoderOptions));
});
