/*
 * The part of node-llama-cpp that the backend uses. Its package is an optional peer of 85 MB and more, so its own types
 * may be missing.
 */

/** Number of a token in the model's vocabulary. */
export type LlamaToken = number;

export interface LlamaModule {
  getLlama(options: {
    readonly gpu: LlamaGpu;
    readonly build: "never";
    readonly skipDownload: true;
    readonly logLevel: string;
    readonly logger: (level: string, message: string) => void;
    readonly maxThreads: number;
  }): Promise<Llama>;
}

/** Kind of GPU that llama.cpp runs on; "auto" for one that is there, false for the CPU. */
export type LlamaGpu = "auto" | "cuda" | "vulkan" | "metal" | false;

export interface Llama {
  readonly gpu: string | false;
  readonly llamaCppRelease?: { readonly repo: string; readonly release: string };
  loadModel(options: {
    readonly modelPath: string;
    readonly gpuLayers?: number | "auto" | "max";
  }): Promise<LlamaModel>;
}

export interface LlamaModel {
  readonly architecture: string | undefined;
  readonly trainContextSize: number;
  readonly fileInfo: {
    readonly metadata: {
      readonly general?: { readonly name?: string };
      readonly tokenizer?: LlamaTokenizerMetadata;
    };
  };
  readonly tokens: {
    readonly bos: LlamaToken | null;
    readonly bosString: string | null;
    readonly eosString: string | null;
    readonly shouldPrependBosToken: boolean;
  };
  tokenize(text: string, specialTokens: boolean): LlamaToken[];
  detokenize(
    tokens: readonly LlamaToken[],
    specialTokens: boolean,
    lastTokens?: readonly LlamaToken[],
  ): string;
  isEogToken(token: LlamaToken): boolean;
  isSpecialToken(token: LlamaToken): boolean;
  dispose(): Promise<void>;
  createContext(options: {
    readonly sequences: number;
    readonly contextSize?: number | "auto";
    readonly batchSize?: number;
    readonly threads: number;
  }): Promise<LlamaContext>;
  createEmbeddingContext(options: {
    readonly contextSize?: number | "auto";
    readonly threads: number;
  }): Promise<{ getEmbeddingFor(text: string): Promise<{ readonly vector: readonly number[] }> }>;
}

interface LlamaTokenizerMetadata {
  readonly chat_template?: string;
  readonly ggml?: { readonly model?: string; readonly tokens?: readonly string[] };
}

export interface LlamaContext {
  /** Tokens of one sequence. */
  readonly contextSize: number;
  getSequence(): LlamaSequence;
}

/** A slot of llama.cpp's batch: it has the keys and values of one text. */
export interface LlamaSequence {
  readonly nextTokenIndex: number;
  readonly contextTokens: readonly LlamaToken[];
  adaptStateToTokens(tokens: readonly LlamaToken[], allowShift: boolean): Promise<void>;
  clearHistory(): Promise<void>;
  saveStateToFile?(path: string): Promise<unknown>;
  loadStateFromFile?(path: string, acceptRisk: { readonly acceptRisk: true }): Promise<void>;
  evaluate(tokens: readonly LlamaToken[], options: LlamaSampling): AsyncGenerator<LlamaToken, void>;
  controlledEvaluate(
    tokens: readonly (LlamaToken | readonly [LlamaToken, LlamaScores])[],
  ): Promise<
    readonly ({ readonly next: { readonly logits?: ReadonlyMap<LlamaToken, number> } } | undefined)[]
  >;
}

export interface LlamaSampling {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly seed?: number;
  readonly yieldEogToken: boolean;
}

/** Asks for the scores of all tokens after a token. */
interface LlamaScores {
  readonly generateNext: {
    readonly logits: true;
    readonly options: { readonly temperature: 0; readonly topK: 0; readonly topP: 1; readonly minP: 0 };
  };
}
