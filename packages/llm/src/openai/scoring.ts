import type { ModelConfig } from "@tritonjs/protocol";
import { Tensor } from "@tritonjs/protocol";
import {
  type EmbeddingCall,
  type EmbeddingModel,
  embeddingCalls,
  embeddingModelOf,
  MOST_INPUTS,
  runEmbeddings,
} from "./embeddings.js";
import { checkLength, emptyField, invalidField, missingField, wrongType } from "./openai-error.js";
import { inferenceRoute, jsonResult, newId, type OpenAiExchange, unixSeconds } from "./openai-exchange.js";
import { type Fields, objectFields } from "./request-fields.js";
import { inputSlot, tensorOf } from "./text-model.js";

/** A question and a text that may answer it. */
type Pair = readonly [query: string, document: string];

/** Route of scores of pairs of texts, as vLLM has it: `POST /v1/score`. */
export const scoreRoute = inferenceRoute(/^\/v1\/score$/, async (exchange) => {
  const { model, pairs } = await exchange.readBody(readScoreRequest);
  const { scores, tokens } = await scorePairs(exchange, model, pairs);
  return jsonResult({
    id: newId("score-"),
    object: "list",
    created: unixSeconds(),
    model,
    data: scores.map((score, index) => ({ index, object: "score", score })),
    usage: usageOf(tokens),
  });
});

/** Route of documents in the order of their scores, as Jina, Cohere and vLLM have it: `POST /v1/rerank`. */
export const rerankRoute = inferenceRoute(/^\/v1\/rerank$/, async (exchange) => {
  const { model, query, documents, most, returnsDocuments } = await exchange.readBody(readRerankRequest);
  const { scores, tokens } = await scorePairs(
    exchange,
    model,
    documents.map((document) => [query, document]),
  );
  const ranked = scores.map((score, index) => ({ score, index })).sort((a, b) => b.score - a.score);
  return jsonResult({
    id: newId("rerank-"),
    model,
    usage: { total_tokens: tokens ?? null },
    results: ranked.slice(0, most).map(({ score, index }) => ({
      index,
      ...(returnsDocuments && { document: { text: documents[index] } }),
      relevance_score: score,
    })),
  });
});

function usageOf(tokens: number | undefined): object | null {
  return tokens === undefined ? null : { prompt_tokens: tokens, total_tokens: tokens };
}

function readScoreRequest(fields: Fields): { readonly model: string; readonly pairs: readonly Pair[] } {
  const model = fields.requiredString("model");
  const first = readTexts(fields, "text_1");
  const second = readTexts(fields, "text_2");
  if (first.length !== 1 && first.length !== second.length) {
    const text = `'text_2': expected ${first.length} texts, one for each of 'text_1', got ${second.length}`;
    throw invalidField("text_2", text);
  }
  return { model, pairs: second.map((text, i) => [first.length === 1 ? first[0]! : first[i]!, text]) };
}

function readRerankRequest(fields: Fields) {
  const model = fields.requiredString("model");
  const query = fields.requiredString("query");
  const documents = readTexts(fields, "documents");
  const most = fields.integer("top_n", 0) || documents.length;
  return { model, query, documents, most, returnsDocuments: fields.boolean("return_documents") ?? true };
}

/** A text, or several. A document may also be an object with its text. */
function readTexts(fields: Fields, name: string): readonly string[] {
  const given = fields.any(name);
  if (given === undefined) throw missingField(name, "a string or an array of strings");
  const texts: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (texts.length === 0) throw emptyField(name, "text");
  checkLength(name, texts, MOST_INPUTS, "texts");
  return texts.map((text, index) => {
    if (typeof text === "string") return text;
    if (typeof text === "object" && text !== null) {
      return objectFields(text, `${name}[${index}]`).requiredString("text");
    }
    throw wrongType(name, "a string or an array of strings", text);
  });
}

/** Scores pairs with a cross-encoder, or with the cosine of the embeddings of both texts. */
async function scorePairs(
  exchange: OpenAiExchange,
  name: string,
  pairs: readonly Pair[],
): Promise<{ readonly scores: readonly number[]; readonly tokens: number | undefined }> {
  const lookUp = await exchange.lookUpModel(name);
  const { config } = lookUp.current();
  const crossEncoder = crossEncoderOf(config);
  if (crossEncoder !== undefined) {
    const calls = pairCalls(config, crossEncoder.maxBatchSize, pairs);
    const { vectors, tokens } = await runEmbeddings(exchange, lookUp, crossEncoder, calls);
    return { scores: vectors.map((vector) => vector[0]!), tokens };
  }
  // Each text needs one embedding, however many pairs it is in.
  const texts = [...new Set(pairs.flat())];
  const model = embeddingModelOf(config);
  const calls = embeddingCalls(model, { inputs: texts, dimensions: undefined });
  const { vectors, tokens } = await runEmbeddings(exchange, lookUp, model, calls);
  const byText = new Map(texts.map((text, i) => [text, vectors[i]!]));
  return { scores: pairs.map(([a, b]) => cosine(byText.get(a)!, byText.get(b)!)), tokens };
}

const QUERY = "query";
const DOCUMENT = "document";

/** A model with the inputs `query` and `document` of BYTES and one output of FP32 with one score. */
function crossEncoderOf({ name, input, output, maxBatchSize }: ModelConfig): EmbeddingModel | undefined {
  const has = (wanted: string) => input.some((one) => one.name === wanted && one.dataType === "TYPE_STRING");
  const scores = output.filter(({ dataType }) => dataType === "TYPE_FP32" || dataType === "TYPE_FP64");
  const [score] = scores;
  if (!has(QUERY) || !has(DOCUMENT) || score === undefined || scores.length !== 1) return undefined;
  const size = score.dims.reduce((product, dim) => product * dim, 1);
  if (size !== 1) {
    const text = `model '${name}' does not score pairs: expected one number in the output '${score.name}', got shape [${score.dims.join(", ")}]`;
    throw invalidField("model", text, "model_not_supported");
  }
  const countsTokens = output.some((one) => one.name === "num_input_tokens");
  return { name, maxBatchSize, requestInput: undefined, tokenMasks: [], output: score.name, countsTokens };
}

/** As few requests as the model's batches allow. */
function pairCalls(
  { input, maxBatchSize }: ModelConfig,
  most: number,
  pairs: readonly Pair[],
): readonly EmbeddingCall[] {
  const size = Math.max(1, most);
  const slots = [QUERY, DOCUMENT].map(
    (name) => inputSlot(input.find((one) => one.name === name)!, maxBatchSize)!,
  );
  return Array.from({ length: Math.ceil(pairs.length / size) }, (_, i) => {
    const rows = pairs.slice(i * size, (i + 1) * size);
    const inputs = slots.map((slot, side) => {
      const { shape } = tensorOf(slot, rows[0]![side]!)!;
      const elements = rows.map((pair) => Buffer.from(pair[side]!));
      const whole = maxBatchSize === 0 ? shape : [rows.length, ...shape.slice(1)];
      return [slot.name, Tensor.fromElements("BYTES", whole, elements)] as const;
    });
    return { inputs: new Map(inputs), rows: rows.length };
  });
}

function cosine(a: Float32Array, b: Float32Array): number {
  const norms = Math.sqrt(dot(a, a) * dot(b, b));
  return norms === 0 ? 0 : dot(a, b) / norms;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [i, value] of a.entries()) sum += value * (b[i] ?? 0);
  return sum;
}
