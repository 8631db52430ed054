import {
  type EmbeddingCallback,
  type FinishReason,
  type SamplingParameters,
  type TextCallback,
  type TextPiece,
  type TextRequest,
  textEmbedder,
  textGenerator,
} from "@tritonjs/text-generation";
import {
  type ChatHistoryItem,
  getLlama,
  LlamaChatSession,
  LlamaCompletion,
  type LlamaContextSequence,
  LlamaLogLevel,
} from "node-llama-cpp";

/** Options of {@link openLlama}. */
export interface LlamaOptions {
  /** A file in the GGUF format. */
  readonly modelPath: string;
  /** Texts at a time: llama.cpp computes a token of each in one pass. @default 4 */
  readonly sequences?: number;
  /**
   * Threads of llama.cpp. They wait for each other in a loop, so on a busy machine more threads than free cores make
   * everything slow. @default 1
   */
  readonly threads?: number;
}

/**
 * Opens a model with llama.cpp. `generate` and `embed` go to `bind` as `inferFunc`. Call `close` after `triton.close()`.
 *
 * llama.cpp works on threads of its own, so the event loop stays free.
 */
export async function openLlama({ modelPath, sequences = 4, threads = 1 }: LlamaOptions) {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    logLevel: LlamaLogLevel.error,
    maxThreads: threads,
  });
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ sequences, threads });
  const embedding = await model.createEmbeddingContext({ threads });

  const generate: TextCallback = async function* (request, { signal }) {
    const sequence = context.getSequence();
    try {
      yield* pieces((onTextChunk) => answer(sequence, request, { signal, onTextChunk }));
      const { usedInputTokens, usedOutputTokens } = sequence.tokenMeter;
      yield { usage: { promptTokens: usedInputTokens, completionTokens: usedOutputTokens } };
    } finally {
      sequence.dispose();
    }
  };
  const embed: EmbeddingCallback = (texts) =>
    Promise.all(texts.map(async (text) => (await embedding.getEmbeddingFor(text)).vector));

  return {
    generate: textGenerator(generate, { concurrency: sequences }),
    embed: textEmbedder(embed),
    close: () => llama.dispose(),
  };
}

interface Handlers {
  readonly signal: AbortSignal;
  readonly onTextChunk: (text: string) => void;
}

/** Generates the answer to a chat or the continuation of a prompt. Returns why it ended. */
async function answer(
  contextSequence: LlamaContextSequence,
  { messages, prompt, sampling }: TextRequest,
  handlers: Handlers,
): Promise<FinishReason> {
  const options = { ...optionsOf(sampling), ...handlers };
  if (messages === undefined) {
    const completion = new LlamaCompletion({ contextSequence });
    const { metadata } = await completion.generateCompletionWithMeta(prompt!, options);
    return reasonOf(metadata.stopReason);
  }
  const history = messages.map(historyItem);
  const session = new LlamaChatSession({ contextSequence, systemPrompt: "" });
  session.setChatHistory(history.slice(0, -1));
  const last = history.at(-1)!;
  const { stopReason } = await session.promptWithMeta(last.type === "user" ? last.text : "", options);
  return reasonOf(stopReason);
}

/** The names of llama.cpp. Stop texts and limits are left to `textGenerator` too, which ends the sequence. */
function optionsOf(sampling: SamplingParameters) {
  return {
    maxTokens: sampling.maxTokens ?? 128,
    temperature: sampling.temperature ?? 0.7,
    ...(sampling.topK !== undefined && { topK: sampling.topK }),
    ...(sampling.topP !== undefined && { topP: sampling.topP }),
    ...(sampling.minP !== undefined && { minP: sampling.minP }),
    ...(sampling.seed !== undefined && { seed: sampling.seed }),
  };
}

function historyItem({
  role,
  content,
}: {
  readonly role: string;
  readonly content?: unknown;
}): ChatHistoryItem {
  const text = typeof content === "string" ? content : JSON.stringify(content ?? "");
  if (role === "system" || role === "developer") return { type: "system", text };
  return role === "assistant" ? { type: "model", response: [text] } : { type: "user", text };
}

function reasonOf(reason: string): FinishReason {
  return reason === "maxTokens" ? "length" : "stop";
}

/** Turns calls of a listener into pieces. */
function pieces(run: (push: (text: string) => void) => Promise<FinishReason>): ReadableStream<TextPiece> {
  return new ReadableStream({
    start(controller) {
      run((text) => controller.enqueue(text)).then(
        (finishReason) => {
          controller.enqueue({ finishReason });
          controller.close();
        },
        (error) => controller.error(error),
      );
    },
  });
}
