import { ClientGone } from "@tritonjs/http/frontend";
import { errorFor, type ModelConfig, Tensor, TritonError } from "@tritonjs/protocol";
import type { Exchange, InferenceResponse } from "@tritonjs/server";
import { checkLength, emptyField, invalidField, missingField, wrongType } from "./openai-error.js";
import { inferenceRoute, jsonResult, type OpenAiExchange } from "./openai-exchange.js";
import { type Fields, isIntegers } from "./request-fields.js";
import { type InputSlot, inputSlot, type SlotValue, tensorOf } from "./text-model.js";

/** Route of embeddings of texts: `POST /v1/embeddings`. */
export const embeddingsRoute = inferenceRoute(/^\/v1\/embeddings$/, async (exchange) => {
  const wanted = await exchange.readBody(readEmbeddingRequest);
  const lookUp = await exchange.lookUpModel(wanted.model);
  const model = embeddingModelOf(lookUp.current().config);
  const { vectors, tokens } = await runEmbeddings(exchange, lookUp, model, embeddingCalls(model, wanted));
  const { dimensions, encoding } = wanted;
  // A model with an input for JSON cuts embeddings itself.
  const cuts = dimensions !== undefined && model.requestInput === undefined;
  return jsonResult({
    object: "list",
    data: vectors.map((vector, index) => {
      const cut = cuts ? cutVector(vector, dimensions) : vector;
      const embedding = encoding === "base64" ? vectorBase64(cut) : Array.from(cut);
      return { object: "embedding", index, embedding };
    }),
    model: wanted.model,
    usage: tokens === undefined ? null : { prompt_tokens: tokens, total_tokens: tokens },
  });
});

/** A text, or the numbers of its tokens. */
type EmbeddingInput = string | readonly number[];

interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly encoding: "float" | "base64";
  /** Numbers in each embedding; undefined for all that the model makes. */
  readonly dimensions: number | undefined;
}

/** Largest number of inputs in a request, as in OpenAI's API. */
export const MOST_INPUTS = 2048;
const MOST_DIMENSIONS = 1 << 20;
const EXPECTED_INPUT = "a string, an array of strings, an array of tokens, or an array of such arrays";

/**
 * Reads the body of `POST /v1/embeddings`.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
function readEmbeddingRequest(fields: Fields): EmbeddingRequest {
  const model = fields.requiredString("model");
  const encoding = fields.choice("encoding_format", ["float", "base64"]) ?? "float";
  const dimensions = fields.integer("dimensions", 1, MOST_DIMENSIONS);
  return { model, inputs: readInputs(fields), encoding, dimensions };
}

function readInputs(fields: Fields): readonly EmbeddingInput[] {
  const given = fields.any("input");
  if (given === undefined) throw missingField("input", EXPECTED_INPUT);
  if (typeof given === "string") return [checkedText(given)];
  if (!Array.isArray(given)) throw wrongType("input", EXPECTED_INPUT, given);
  if (given.length === 0) throw emptyField("input", "input");
  if (typeof given[0] === "number") return [checkedTokens(given)];
  checkLength("input", given, MOST_INPUTS, "inputs");
  return given.map((input) => {
    if (typeof input === "string") return checkedText(input);
    if (Array.isArray(input)) return checkedTokens(input);
    throw wrongType("input", EXPECTED_INPUT, input);
  });
}

function checkedText(text: string): string {
  if (text !== "") return text;
  throw invalidField("input", "'input': expected text that is not empty");
}

function checkedTokens(tokens: readonly unknown[]): readonly number[] {
  if (tokens.length === 0) throw emptyField("input", "token");
  if (isIntegers(tokens)) return tokens;
  throw wrongType("input", EXPECTED_INPUT, tokens);
}

/**
 * Largest number of model requests in flight for one client's list, so that one long list does not fill the model's
 * queue.
 */
const MOST_CALLS_AT_A_TIME = 8;

/**
 * Runs requests for embeddings, several at a time. The first error ends them all, and so does a client that leaves.
 *
 * @returns the embeddings of all inputs in their order, and the tokens of all inputs if the model reports them
 * @throws the first error of the model; ClientGone when the client leaves
 */
export async function runEmbeddings(
  exchange: OpenAiExchange,
  lookUp: Exchange,
  model: EmbeddingModel,
  calls: readonly EmbeddingCall[],
): Promise<{ readonly vectors: readonly Vector[]; readonly tokens: number | undefined }> {
  const sent: Exchange[] = [];
  let over = false;
  const cancelAll = () => {
    over = true;
    for (const call of sent) call.cancel();
  };
  const forget = exchange.request.onGone(cancelAll);
  const { output, countsTokens } = model;
  const requestedOutputs = countsTokens ? [output, "num_input_tokens"] : [output];
  const send = ({ inputs }: EmbeddingCall, suffix: string) => {
    const { call, init } = exchange.newCall(lookUp.current(), suffix, { inputs, requestedOutputs });
    sent.push(call);
    return new Promise<InferenceResponse>((resolve, reject) => {
      let answer: InferenceResponse | undefined;
      void call.send(init, {
        respond(outcome, final) {
          if (TritonError.is(outcome)) reject(outcome);
          else answer ??= outcome;
          if (!final) return;
          if (answer !== undefined) resolve(answer);
          else reject(errorFor("INTERNAL", `model '${model.name}': expected an embedding, got no response`));
        },
        refuse: reject,
      });
    });
  };
  const answers: InferenceResponse[] = new Array(calls.length);
  let next = 0;
  const work = async () => {
    while (next < calls.length && !over) {
      const index = next++;
      answers[index] = await send(calls[index]!, index === 0 ? "" : `-${index}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(MOST_CALLS_AT_A_TIME, calls.length) }, work));
  } catch (error) {
    cancelAll();
    throw exchange.request.gone ? new ClientGone(error) : error;
  } finally {
    forget();
  }
  if (exchange.request.gone || over) throw new ClientGone();
  const counts = answers.map((answer) => countedTokens(answer));
  return {
    vectors: answers.flatMap((answer, index) => readVectors(model, answer, calls[index]!.rows)),
    tokens: counts.every((count) => count !== undefined)
      ? counts.reduce((sum, count) => sum + count, 0)
      : undefined,
  };
}

export interface EmbeddingModel {
  readonly name: string;
  readonly maxBatchSize: number;
  /** Input for vLLM's JSON. Its embedding comes as JSON in `text_output`. */
  readonly requestInput: InputSlot | undefined;
  readonly textInput?: InputSlot | undefined;
  readonly tokenInput?: InputSlot | undefined;
  /** Inputs beside the tokens, which hold a 1 or a 0 for each of them. */
  readonly tokenMasks: readonly InputSlot[];
  readonly output: string;
  readonly countsTokens: boolean;
}

/** Values of inputs that models of the BERT family have beside the tokens. */
const MASK_VALUES: Readonly<Record<string, number>> = { attention_mask: 1, token_type_ids: 0 };

const FLOATS = new Set(["TYPE_FP32", "TYPE_FP64"]);
const INTEGERS = new Set(["INT32", "INT64"]);

/**
 * Describes the tensors of an embedding model.
 *
 * @throws OpenAiError 400 for a model that makes no embeddings
 */
export function embeddingModelOf({ name, input, output, maxBatchSize }: ModelConfig): EmbeddingModel {
  const slots = input.map((one) => inputSlot(one, maxBatchSize)).filter((slot) => slot !== undefined);
  const outputs = output.map((one) => one.name);
  const countsTokens = outputs.includes("num_input_tokens");
  const named = (wanted: string) => slots.find((slot) => slot.name === wanted);
  const requestInput = named("embedding_request");
  const required = slots.filter(({ optional }) => !optional);
  const described = { name, maxBatchSize, countsTokens, requestInput, tokenMasks: [] };
  if (requestInput !== undefined && outputs.includes("text_output")) {
    const textInput = required.find((slot) => slot.name === "text_input");
    return { ...described, textInput, output: "text_output" };
  }
  const floats = output.filter(({ dataType }) => FLOATS.has(dataType));
  const [vector] = floats;
  if (vector !== undefined && floats.length === 1) {
    const texts = slots.filter(({ datatype }) => datatype === "BYTES");
    const textInput = named("text_input") ?? (texts.length === 1 ? texts[0] : undefined);
    if (textInput !== undefined && required.every((slot) => slot === textInput)) {
      return { ...described, textInput, output: vector.name };
    }
    const masks = slots.filter((slot) => Object.hasOwn(MASK_VALUES, slot.name));
    const tokens = slots.filter((slot) => INTEGERS.has(slot.datatype) && !masks.includes(slot));
    const [tokenInput] = tokens;
    if (tokens.length === 1 && required.every((slot) => slot === tokenInput || masks.includes(slot))) {
      return { ...described, tokenMasks: masks, tokenInput, output: vector.name };
    }
  }
  const text =
    `model '${name}' does not make embeddings: expected one input of BYTES for a text, or of INT64 or INT32 for tokens, ` +
    "and one output of FP32";
  throw invalidField("model", text, "model_not_supported");
}

export interface EmbeddingCall {
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly rows: number;
}

/**
 * Makes the requests for the inputs: as few as the model's batches allow for texts, and one for each input otherwise.
 *
 * @throws OpenAiError 400 for tokens that the model cannot take, and for texts to a model that takes tokens
 */
export function embeddingCalls(
  model: EmbeddingModel,
  { inputs, dimensions }: Pick<EmbeddingRequest, "inputs" | "dimensions">,
): EmbeddingCall[] {
  const { maxBatchSize, requestInput } = model;
  if (requestInput !== undefined)
    return inputs.map((input) => jsonCall(model, requestInput, input, dimensions));
  const batches: EmbeddingCall[] = [];
  const texts: string[] = [];
  const flush = () => {
    if (texts.length > 0) batches.push(textCall(model, texts.splice(0)));
  };
  for (const input of inputs) {
    if (typeof input !== "string") {
      flush();
      batches.push(tokenCall(model, input));
      continue;
    }
    texts.push(input);
    if (texts.length >= Math.max(1, maxBatchSize)) flush();
  }
  flush();
  return batches;
}

function jsonCall(
  { textInput, name }: EmbeddingModel,
  slot: InputSlot,
  input: EmbeddingInput,
  dimensions: number | undefined,
): EmbeddingCall {
  const pooling = dimensions === undefined ? {} : { pooling_params: { dimensions: [dimensions] } };
  const inputs = new Map([[slot.name, fittedTensor(name, slot, JSON.stringify({ input, ...pooling }))]]);
  if (textInput !== undefined) inputs.set(textInput.name, fittedTensor(name, textInput, ""));
  return { inputs, rows: 1 };
}

function textCall(
  { name, textInput, maxBatchSize }: EmbeddingModel,
  texts: readonly string[],
): EmbeddingCall {
  if (textInput === undefined) {
    const text = `model '${name}' takes only tokens: expected arrays of integers, got text`;
    throw invalidField("input", text, "unsupported_value");
  }
  const first = fittedTensor(name, textInput, texts[0]!);
  if (maxBatchSize === 0) return { inputs: new Map([[textInput.name, first]]), rows: 1 };
  const elements = texts.map((text) => Buffer.from(text));
  const tensor = Tensor.fromElements("BYTES", [texts.length, ...first.shape.slice(1)], elements);
  return { inputs: new Map([[textInput.name, tensor]]), rows: texts.length };
}

function tokenCall(
  { name, tokenInput, tokenMasks }: EmbeddingModel,
  tokens: readonly number[],
): EmbeddingCall {
  if (tokenInput === undefined) {
    const text = `model '${name}' takes only text: expected strings, got tokens`;
    throw invalidField("input", text, "unsupported_value");
  }
  const inputs = new Map([[tokenInput.name, fittedTensor(name, tokenInput, tokens)]]);
  for (const mask of tokenMasks) {
    const values = new Array<number>(tokens.length).fill(MASK_VALUES[mask.name]!);
    inputs.set(mask.name, fittedTensor(name, mask, values));
  }
  return { inputs, rows: 1 };
}

function fittedTensor(model: string, slot: InputSlot, value: SlotValue): Tensor {
  const tensor = tensorOf(slot, value);
  if (tensor !== undefined) return tensor;
  const count = Array.isArray(value) ? value.length : 1;
  const text = `model '${model}', input '${slot.name}': expected shape [${slot.shape.join(", ")}], got ${count} elements`;
  throw invalidField("input", text);
}

type Vector = Float32Array;

/**
 * Reads the embeddings of a response.
 *
 * @throws TritonError INTERNAL for an output that does not hold them
 */
function readVectors(model: EmbeddingModel, { outputs }: InferenceResponse, rows: number): Vector[] {
  const { name, output, requestInput } = model;
  const tensor = outputs.get(output);
  if (tensor === undefined) throw invalidOutput(name, output, "an embedding", "no output");
  if (requestInput !== undefined) {
    const vector = vectorFromJson(tensor.elements[0] as Uint8Array);
    if (vector === undefined) throw invalidOutput(name, output, "a JSON array of numbers", "other text");
    return [vector];
  }
  const elements = tensor.elements as Float32Array | Float64Array;
  const { length } = elements;
  if (length === 0 || length % rows !== 0) {
    throw invalidOutput(name, output, `${rows} embeddings`, `shape [${tensor.shape.join(", ")}]`);
  }
  const size = length / rows;
  return Array.from({ length: rows }, (_, row) =>
    // A copy: the model may use its memory again.
    Float32Array.from(elements.subarray(row * size, (row + 1) * size)),
  );
}

/** Tokens of the inputs of a request; undefined if the model does not report them. */
function countedTokens({ outputs }: InferenceResponse): number | undefined {
  const tensor = outputs.get("num_input_tokens");
  if (tensor === undefined || tensor.datatype === "BYTES") return undefined;
  let sum = 0;
  for (const count of tensor.elements as Iterable<number | bigint>) sum += Number(count);
  return sum;
}

/**
 * Cuts an embedding to its first numbers and gives it the length 1 again, as OpenAI does for `dimensions`.
 *
 * @throws OpenAiError 400 for more numbers than there are
 */
function cutVector(vector: Vector, dimensions: number): Vector {
  if (dimensions === vector.length) return vector;
  if (dimensions > vector.length) {
    const text = `'dimensions': expected at most ${vector.length}, the length of the model's embeddings, got ${dimensions}`;
    throw invalidField("dimensions", text);
  }
  const cut = vector.slice(0, dimensions);
  const norm = Math.hypot(...cut);
  return norm === 0 ? cut : cut.map((value) => value / norm);
}

function vectorBase64(vector: Vector): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

function vectorFromJson(bytes: Uint8Array | undefined): Vector | undefined {
  try {
    const value = JSON.parse(Buffer.from(bytes ?? []).toString()) as unknown;
    return Array.isArray(value) && value.every((one) => typeof one === "number")
      ? Float32Array.from(value)
      : undefined;
  } catch {
    return undefined;
  }
}

function invalidOutput(model: string, output: string, expected: string, got: string): TritonError {
  return errorFor("INVALID_OUTPUT", `model '${model}', output '${output}': expected ${expected}, got ${got}`);
}
