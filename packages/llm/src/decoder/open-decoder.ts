import { createReadStream } from "node:fs";
import { totalmem } from "node:os";
import { type OnnxSession, openSession } from "@tritonjs/backends/onnxruntime";
import type { InferContext } from "@tritonjs/core";
import type { WorkerHost } from "@tritonjs/core/backend";
import { errorOf, TritonError } from "@tritonjs/protocol";
import { ChatTemplate } from "../chat/chat-template.js";
import { readConstraintVocabulary, StructuredOutput } from "../sampling/structured-output.js";
import { TextTokenizer } from "../text-tokenizer.js";
import {
  DECODER_DEFAULTS,
  type DecoderConfig,
  readDecoderConfig,
  readModelDirectory,
  type TextGenerationOptions,
} from "./decoder-settings.js";
import { bytesPerToken, type DecoderGraph, readDecoderGraph } from "./forward-pass.js";
import { KvBudget } from "./generation-engine.js";

/** Options that cross to the worker. */
export type DecoderData = Omit<TextGenerationOptions, "directory" | "onWarning"> & {
  readonly directory: string;
};

/** A decoder with everything that its directory holds. */
export interface OpenDecoder {
  readonly session: OnnxSession;
  readonly graph: DecoderGraph;
  readonly tokenizer: TextTokenizer;
  readonly template: ChatTemplate | undefined;
  readonly config: DecoderConfig;
  readonly contextLength: number;
  readonly budget: KvBudget;
  /** Bytes that one token takes of the budget. */
  readonly tokenBytes: number;
  readonly pads: boolean;
  /** Opens the grammars for structured output, once. */
  structured(this: void): StructuredOutput;
}

/** A step has keys and values twice: its input and its output. */
const COPIES = 2;

/**
 * Opens a decoder: reads its directory and opens its session.
 *
 * @throws TritonError that names the file or the limit that is at fault
 */
export async function openDecoder(
  data: DecoderData,
  instance: Pick<InferContext, "device">,
  { warn }: Pick<WorkerHost, "warn">,
): Promise<OpenDecoder> {
  const {
    directory,
    maxRunningRequests = DECODER_DEFAULTS.maxRunningRequests,
    prefillTokens: _prefillTokens,
    prefixCache: _prefixCache,
    kvCacheBytes,
    contextLength: givenLength,
    ...settings
  } = data;
  const files = await readModelDirectory(directory);
  const tokenizer = new TextTokenizer({ tokenizer: files.tokenizer, config: files.tokenizerConfig });
  const config = readDecoderConfig(files, tokenizer);
  const template = await ChatTemplate.open(directory).catch((error: unknown) => {
    // A model without a tokenizer_config.json takes prompts, but no chats.
    if (TritonError.from(error).code === "NOT_FOUND") return undefined;
    throw error;
  });
  const session = await openSession(files.model, instance, { ...settings, onWarning: warn });
  const graph = readDecoderGraph(session, files.model, config);
  const contextLength = givenLength ?? config.contextLength;
  if (contextLength === undefined) {
    throw errorOf(
      "INVALID_MODEL",
      `cannot open the decoder in ${directory}: expected 'max_position_embeddings' in config.json or the option ` +
        "contextLength, got neither",
    );
  }
  const tokenBytes = COPIES * bytesPerToken(graph.kv);
  const whole = maxRunningRequests * contextLength * tokenBytes;
  const bytes = kvCacheBytes ?? Math.max(contextLength * tokenBytes, Math.min(whole, totalmem() / 4));
  const budget = new KvBudget(Math.floor(bytes / tokenBytes));
  if (budget.tokens < 2) {
    throw errorOf(
      "INVALID_OPTION",
      `cannot open the decoder in ${directory}: expected kvCacheBytes of at least ${2 * tokenBytes}, which is two ` +
        `tokens, got ${bytes}`,
    );
  }
  const pads = graph.hasPositions && !(await hasFusedAttention(files.model));
  const width = session.outputs.find(({ name }) => name === "logits")!.shape.at(-1)!;
  let structured: StructuredOutput | undefined;
  return {
    session,
    graph,
    tokenizer,
    template,
    config,
    contextLength,
    budget,
    tokenBytes,
    pads,
    structured: () => {
      const vocabulary = () => readConstraintVocabulary(files.tokenizer, width > 0 ? width : undefined);
      structured ??= new StructuredOutput(vocabulary(), config.endTokens);
      return structured;
    },
  };
}

/**
 * True if a graph has ONNX Runtime's operator for attention with groups, which derives the place of each token from the
 * sum of the mask and so cannot take rows that are padded on the left.
 */
async function hasFusedAttention(file: string): Promise<boolean> {
  const name = "GroupQueryAttention";
  let end = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    const text = Buffer.concat([end, chunk]);
    if (text.includes(name)) return true;
    end = Buffer.from(text.subarray(Math.max(0, text.length - name.length + 1)));
  }
  return false;
}
