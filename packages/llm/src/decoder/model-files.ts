import { readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import {
  assertJsonFits,
  type DecoderDtype,
  errorFor,
  graphPaths,
  PREFERRED_DTYPES,
  TritonError,
} from "@tritonjs/protocol";
import { tokenizerOfSentencePiece } from "../sentencepiece-model.js";
import type { Normalize } from "../sentencepiece-normalizer.js";
import { byteLevelTokenizer } from "../token-spelling.js";

/** Which graph of a directory is loaded. */
export interface GraphChoice {
  /** Path of the graph inside the directory; found by `dtype` unless given. */
  readonly file?: string | undefined;
  readonly dtype?: DecoderDtype | undefined;
  readonly executionProviders?: readonly unknown[] | undefined;
}

export type ModelFileObject = Readonly<Record<string, unknown>>;

/** Contents of a model's directory besides its graph. */
export interface ModelDirectory {
  readonly model: string;
  readonly config: ModelFileObject;
  readonly generation: ModelFileObject;
  readonly tokenizer: ModelFileObject;
  readonly tokenizerConfig: ModelFileObject;
  /** Changes a text before the tokenizer gets it. */
  readonly normalize?: Normalize | undefined;
  /** Graph that turns tokens into the inputs of the decoder; undefined if the decoder takes tokens. */
  readonly embedding: string | undefined;
  readonly images: ImageFiles | undefined;
}

/** Files of a model that takes images. */
export interface ImageFiles {
  /** Path of the graph that turns an image into inputs of the decoder. */
  readonly encoder: string;
  /** All of `config.json`, whose `text_config` has the settings of the decoder. */
  readonly config: ModelFileObject;
  /** `preprocessor_config.json`, or its part of `processor_config.json`. */
  readonly preprocessor: ModelFileObject;
}

const CONFIG = "config.json";
const GENAI_CONFIG = "genai_config.json";
const TOKENIZER = "tokenizer.json";
const SENTENCE_PIECE = "tokenizer.model";
const VOCABULARY = "vocab.json";
const MERGES = "merges.txt";

/**
 * Finds the graph of a model, and checks that the files beside it exist.
 *
 * @returns path of the graph
 * @throws TritonError NOT_FOUND that names the missing file
 */
export function findGraph(directory: string, choice: GraphChoice = {}): string {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    const got = isFile(directory) ? "a file" : "nothing";
    throw missingFile(`expected a directory at ${directory}, got ${got}`);
  }
  const graph = graphPath(directory, choice);
  const has = (...names: readonly string[]) => names.every((name) => isFile(join(directory, name)));
  if (!has(CONFIG) && !has(GENAI_CONFIG)) {
    throw missingFile(`expected the file ${CONFIG} or ${GENAI_CONFIG} in ${directory}`);
  }
  if (!has(TOKENIZER) && !has(SENTENCE_PIECE) && !has(VOCABULARY, MERGES)) {
    const names = `${TOKENIZER}, ${SENTENCE_PIECE}, or ${VOCABULARY} and ${MERGES}`;
    throw missingFile(`expected the file ${names} in ${directory}`);
  }
  return graph;
}

function graphPath(directory: string, { file, dtype, executionProviders = [] }: GraphChoice): string {
  const given = file ?? genaiFile(directory);
  if (given !== undefined) {
    const path = join(directory, given);
    if (isAbsolute(given) || relative(directory, path).startsWith("..")) {
      throw errorFor(
        "PATH_NOT_ALLOWED",
        `cannot open the decoder: expected the path of a graph inside ${directory}, got '${given}'`,
      );
    }
    if (isFile(path)) return path;
    throw missingFile(`expected the graph ${given} in ${directory}, got none`);
  }
  const dtypes = dtype === undefined ? dtypesFor(executionProviders) : [dtype];
  const found = findNamed(directory, dtypes, DECODER_NAMES);
  if (found !== undefined) return found;
  const wanted =
    dtype === undefined
      ? `${graphPaths(DECODER_NAMES, "fp32").join(", ")}, or one of another dtype`
      : graphPaths(DECODER_NAMES, dtype).join(", ");
  throw missingFile(`expected ${wanted} in ${directory}, or the option file`);
}

const DECODER_NAMES = ["model", "decoder_model_merged"] as const;

function dtypesFor(providers: readonly unknown[]): readonly DecoderDtype[] {
  const isOnCpu = providers.every((one) => one === "cpu" || (one as { name?: string }).name === "cpu");
  return PREFERRED_DTYPES[isOnCpu ? "cpu" : "gpu"];
}

function findNamed(
  directory: string,
  dtypes: readonly DecoderDtype[],
  names: readonly string[],
): string | undefined {
  const all = dtypes.flatMap((dtype) => graphPaths(names, dtype)).map((name) => join(directory, name));
  return all.find(isFile);
}

/** A graph beside the decoder, in the decoder's precision or else in another one. */
function graphBeside(directory: string, choice: GraphChoice, name: string): string | undefined {
  const { dtype, executionProviders = [] } = choice;
  const dtypes = [...(dtype === undefined ? [] : [dtype]), ...dtypesFor(executionProviders)];
  return findNamed(directory, dtypes, [name]);
}

/** Graph of a directory that encodes images; undefined for a model of text alone. */
export function findImageEncoder(directory: string, choice: GraphChoice = {}): string | undefined {
  return graphBeside(directory, choice, "vision_encoder");
}

/** The graph that a configuration of onnxruntime-genai names. */
function genaiFile(directory: string): string | undefined {
  const path = join(directory, GENAI_CONFIG);
  if (!isFile(path)) return undefined;
  const name = objectAt(parseObject(readFileSync(path, "utf8"), path), "model", "decoder").filename;
  return typeof name === "string" ? name : undefined;
}

/**
 * Reads the files of a model. `generation_config.json` and `tokenizer_config.json` may be missing.
 *
 * @throws TritonError NOT_FOUND for missing files, INVALID_ARG for files that are not what their names say
 */
export async function readModelDirectory(
  directory: string,
  choice: GraphChoice = {},
): Promise<ModelDirectory> {
  const model = findGraph(directory, choice);
  const read = (name: string) => readJson(join(directory, name));
  const [config, generation, tokenizerConfig, genai, preprocessor, processor] = await Promise.all([
    read(CONFIG),
    read("generation_config.json"),
    read("tokenizer_config.json"),
    read(GENAI_CONFIG),
    read("preprocessor_config.json"),
    read("processor_config.json"),
  ]);
  const encoder = findImageEncoder(directory, choice);
  // Models of several kinds of input have the settings of their decoder in a part of the configuration.
  const own = { ...config, ...objectAt(config, "text_config"), ...genaiConfig(genai) };
  return {
    model,
    config: own,
    generation: { ...genaiGeneration(genai), ...generation },
    tokenizerConfig,
    ...(await readTokenizer(directory, tokenizerConfig)),
    embedding: graphBeside(directory, choice, "embed_tokens"),
    images:
      encoder === undefined
        ? undefined
        : {
            encoder,
            config,
            preprocessor: { ...objectAt(processor, "image_processor"), ...preprocessor },
          },
  };
}

/** Members of `genai_config.json` by the names that `config.json` has for them. */
function genaiConfig(genai: ModelFileObject): ModelFileObject {
  const model = objectAt(genai, "model");
  const { num_key_value_heads, num_attention_heads, hidden_size, head_size } = objectAt(model, "decoder");
  const members = {
    max_position_embeddings: model.context_length,
    eos_token_id: model.eos_token_id,
    num_key_value_heads,
    num_attention_heads,
    hidden_size,
    head_dim: head_size,
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function genaiGeneration(genai: ModelFileObject): ModelFileObject {
  const { do_sample, temperature, top_k, top_p, repetition_penalty } = objectAt(genai, "search");
  return { do_sample, temperature, top_k, top_p, repetition_penalty };
}

function objectAt(value: ModelFileObject, ...names: readonly string[]): ModelFileObject {
  let at: unknown = value;
  for (const name of names) at = Object(at)[name];
  return typeof at === "object" && at !== null && !Array.isArray(at) ? (at as ModelFileObject) : {};
}

/** The tokenizer: of Hugging Face, of SentencePiece, or the two files of GPT-2's. */
async function readTokenizer(
  directory: string,
  tokenizerConfig: ModelFileObject,
): Promise<Pick<ModelDirectory, "tokenizer" | "normalize">> {
  const path = (name: string) => join(directory, name);
  if (isFile(path(TOKENIZER))) return { tokenizer: await readJson(path(TOKENIZER)) };
  const added = addedTokens(tokenizerConfig);
  if (isFile(path(SENTENCE_PIECE))) {
    const first = firstToken(tokenizerConfig, true);
    return tokenizerOfSentencePiece(await readFile(path(SENTENCE_PIECE)), path(SENTENCE_PIECE), added, first);
  }
  const vocabulary = await readJson(path(VOCABULARY));
  const merges = await readFile(path(MERGES), "utf8");
  return { tokenizer: byteLevelTokenizer(vocabulary, merges, added, firstToken(tokenizerConfig, false)) };
}

/**
 * Token that begins every text, as the configuration says: Llama's tokenizers have one unless they say otherwise, and
 * GPT-2's only if they say so. An empty text means none.
 */
function firstToken({ add_bos_token, bos_token }: ModelFileObject, otherwise: boolean): string {
  if (!(add_bos_token ?? otherwise)) return "";
  const token: unknown = typeof bos_token === "string" ? bos_token : Object(bos_token).content;
  return typeof token === "string" ? token : "<s>";
}

/** Tokens of `added_tokens_decoder`, which a tokenizer without `tokenizer.json` has in its configuration. */
function addedTokens({ added_tokens_decoder: given }: ModelFileObject) {
  return Object.entries(Object(given) as Record<string, object>).map(([id, token]) => ({
    ...(token as { content: string; special?: boolean }),
    id: Number(id),
  }));
}

async function readJson(path: string): Promise<ModelFileObject> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw brokenFile(path, error.message, error);
  });
  return parseObject(text, path);
}

function parseObject(text: string, path: string): ModelFileObject {
  assertJsonFits(text, path);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw brokenFile(path, `text that is not JSON (${(error as Error).message})`, error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as ModelFileObject;
  throw brokenFile(path, value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);
}

function brokenFile(path: string, got: string, cause?: unknown): TritonError {
  return errorFor("INVALID_MODEL", `cannot read ${path}: expected a JSON object, got ${got}`, { cause });
}

function missingFile(what: string): TritonError {
  return new TritonError("NOT_FOUND", `cannot open the decoder: ${what}`);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
