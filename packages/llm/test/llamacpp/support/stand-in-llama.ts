import { readFileSync, writeFileSync } from "node:fs";
import type {
  LlamaContext,
  LlamaModel,
  LlamaModule,
  LlamaSampling,
  LlamaSequence,
  LlamaToken,
} from "../../../src/llamacpp/llama-module.js";
import { BYTE_TOKENS, type LlamaScript } from "./scripted-llama.js";

const TOKENS = [...BYTE_TOKENS, ..."▁etaoinshrdlucmfw"];
const FIRST_BYTE = 3;
const END = 2;

/** What a stand-in was asked to do, in order. */
export interface LlamaRecord {
  /** Tokens of each evaluation. */
  readonly evaluated: (readonly LlamaToken[])[];
  /** Options of each text that llama.cpp would sample itself. */
  readonly sampled: LlamaSampling[];
  open: number;
  /** What the model writes. @default nonsense that depends on all tokens before it */
  script?: LlamaScript | undefined;
}

/**
 * Stands in for `node-llama-cpp` where it is not installed. Its model has tokens of bytes; the next token depends on all
 * tokens before it.
 */
export function standInLlama(record: LlamaRecord): LlamaModule {
  return {
    getLlama: async ({ logger }) => {
      return {
        gpu: false,
        loadModel: async ({ modelPath }) => {
          const text = readFileSync(modelPath, "latin1");
          if (!text.startsWith("GGUF"))
            throw new Error(`Invalid GGUF magic. Expected "GGUF" but got "${text.slice(0, 4)}".`);
          const fault = text.includes("xlama") ? "unknown model architecture: 'xlama'" : undefined;
          if (fault !== undefined) {
            logger("error", `llama_model_load: error loading model: ${fault}\n`);
            throw new Error("Failed to load model");
          }
          record.open++;
          return standInModel(record);
        },
      };
    },
  };
}

function standInModel(record: LlamaRecord): LlamaModel {
  const { script } = record;
  const tokens = script === undefined ? TOKENS : [...BYTE_TOKENS, ...script.pieces];
  const isSpecial = (token: LlamaToken) =>
    token < FIRST_BYTE || script?.special?.includes(tokens[token]!) === true;
  return {
    architecture: "llama",
    trainContextSize: 512,
    fileInfo: {
      metadata: {
        tokenizer: {
          chat_template:
            script?.template ??
            "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: ",
          ggml: { model: "llama", tokens },
        },
      },
    },
    tokens: { bos: 1, bosString: "<s>", eosString: "</s>", shouldPrependBosToken: true },
    tokenize: (text) =>
      text
        .split(/(<s>|<\/s>)/)
        .flatMap((part) =>
          part === "<s>"
            ? [1]
            : part === "</s>"
              ? [END]
              : [...Buffer.from(part)].map((byte) => FIRST_BYTE + byte),
        ),
    detokenize: (shown, specialTokens) =>
      Buffer.concat(
        shown.map((token) => {
          if (isSpecial(token)) return Buffer.from(specialTokens ? tokens[token]! : "");
          return token < FIRST_BYTE + 256
            ? Buffer.from([token - FIRST_BYTE])
            : Buffer.from(tokens[token]!.replace("▁", " "));
        }),
      ).toString(),
    isEogToken: (token) => token === END || /^<\|(return|end|call)\|>$/.test(tokens[token]!),
    isSpecialToken: isSpecial,
    dispose: async () => {
      record.open--;
    },
    createContext: async ({ contextSize }) => standInContext(Number(contextSize), record),
    createEmbeddingContext: async () => ({
      getEmbeddingFor: async (text) => ({ vector: [text.length, text.split(" ").length, 1] }),
    }),
  };
}

function standInContext(contextSize: number, record: LlamaRecord): LlamaContext {
  return { contextSize, getSequence: () => new StandInSequence(record) };
}

class StandInSequence implements LlamaSequence {
  contextTokens: LlamaToken[] = [];

  constructor(private readonly record: LlamaRecord) {}

  get nextTokenIndex(): number {
    return this.contextTokens.length;
  }

  async adaptStateToTokens(tokens: readonly LlamaToken[]): Promise<void> {
    let length = 0;
    while (length < tokens.length && tokens[length] === this.contextTokens[length]) length++;
    this.contextTokens = this.contextTokens.slice(0, length);
  }

  async clearHistory(): Promise<void> {
    this.contextTokens = [];
  }

  async saveStateToFile(path: string): Promise<void> {
    writeFileSync(path, JSON.stringify(this.contextTokens));
  }

  async loadStateFromFile(path: string): Promise<void> {
    this.contextTokens = JSON.parse(readFileSync(path, "utf8")) as LlamaToken[];
  }

  async *evaluate(tokens: readonly LlamaToken[], options: LlamaSampling): AsyncGenerator<LlamaToken, void> {
    this.record.sampled.push(options);
    for (let next = tokens; ; ) {
      const scores = await this.#run(next);
      const token = scores.indexOf(Math.max(...scores));
      yield token;
      next = [token];
    }
  }

  async controlledEvaluate(tokens: Parameters<LlamaSequence["controlledEvaluate"]>[0]) {
    const scores = await this.#run(tokens.map((one) => (typeof one === "number" ? one : one[0])));
    const last = { next: { logits: new Map(scores.map((score, token) => [token, score])) } };
    return [...tokens.slice(1).map(() => undefined), last];
  }

  async #run(tokens: readonly LlamaToken[]): Promise<number[]> {
    await new Promise((resolve) => setImmediate(resolve));
    this.record.evaluated.push(tokens);
    this.contextTokens.push(...tokens);
    const { script } = this.record;
    if (script !== undefined) {
      const next = Math.max(BYTE_TOKENS.length, this.contextTokens.at(-1)! + 1);
      const count = BYTE_TOKENS.length + script.pieces.length;
      return Array.from({ length: count }, (_, token) => (token === (next === count ? END : next) ? 8 : 0));
    }
    let state = this.contextTokens.reduce(
      (sum, token, i) => (Math.imul(sum, 31) + token * (i + 7)) >>> 0,
      17,
    );
    return TOKENS.map((_, token) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return token === 0 || token === 1 ? -20 : (state / 2 ** 32) * 4;
    });
  }
}
