import {
  type EmbeddingCallback,
  type GeneratorRequest,
  type SamplingParameters,
  type TextCallback,
  type TextFinishReason,
  textEmbedder,
  textGenerator,
  type YieldedPiece,
} from "@tritonjs/llm";
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

  const free = Array.from({ length: sequences }, () => context.getSequence());

  const generate: TextCallback = async function* (request, { signal }) {
    const sequence = free.pop()!;
    const before = sequence.tokenMeter.getState();
    // Also ends the generation when no more pieces are wanted: after a stop text, for example.
    const stop = new AbortController();
    const running = new PieceStream((onTextChunk) =>
      answer(sequence, request, { signal: AbortSignal.any([signal, stop.signal]), onTextChunk }),
    );
    try {
      yield* running.pieces;
      const used = sequence.tokenMeter.diff(before);
      yield { usage: { promptTokens: used.usedInputTokens, completionTokens: used.usedOutputTokens } };
    } finally {
      stop.abort();
      await running.settled;
      await sequence.clearHistory();
      free.push(sequence);
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
  { messages, prompt, sampling }: GeneratorRequest,
  handlers: Handlers,
): Promise<TextFinishReason> {
  const options = { ...optionsOf(sampling), ...handlers };
  if (messages === undefined) {
    const completion = new LlamaCompletion({ contextSequence });
    const { metadata } = await completion.generateCompletionWithMeta(prompt!, options);
    completion.dispose({ disposeSequence: false });
    return reasonOf(metadata.stopReason);
  }
  const history = messages.map(historyItem);
  const session = new LlamaChatSession({ contextSequence, systemPrompt: "" });
  session.setChatHistory(history.slice(0, -1));
  const last = history.at(-1)!;
  const { stopReason } = await session.promptWithMeta(last.type === "user" ? last.text : "", options);
  session.dispose({ disposeSequence: false });
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

function reasonOf(reason: string): TextFinishReason {
  return reason === "maxTokens" ? "length" : "stop";
}

/** Turns calls of a listener into pieces. */
class PieceStream {
  readonly pieces: ReadableStream<YieldedPiece>;
  /** Resolves when the engine is done with the text, whatever the outcome. */
  readonly settled: Promise<void>;

  constructor(run: (push: (text: string) => void) => Promise<TextFinishReason>) {
    let settle: () => void;
    this.settled = new Promise((resolve) => {
      settle = resolve;
    });
    let open = true;
    this.pieces = new ReadableStream({
      start: async (controller) => {
        const push = (piece: YieldedPiece) => open && controller.enqueue(piece);
        run(push)
          .then((finishReason) => {
            push({ finishReason });
            if (open) controller.close();
          })
          .catch((error: unknown) => controller.error(error))
          .finally(settle);
      },
      cancel: () => {
        open = false;
      },
    });
  }
}
