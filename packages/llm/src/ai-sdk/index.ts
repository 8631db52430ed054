import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { EmbeddingModelV3, LanguageModelV3, ProviderV3, RerankingModelV3 } from "@ai-sdk/provider";
import {
  BASE_URL,
  embedTexts,
  type InProcessTriton,
  inProcessFetch,
  rankTexts,
} from "../openai/in-process.js";
import type { OpenAiFetchHandlerOptions } from "../openai/index.js";

/** Models of a program for the AI SDK: `provider("llama")` is a language model. */
export interface TritonProvider extends Omit<ProviderV3, "imageModel"> {
  (modelId: string): LanguageModelV3;
  rerankingModel(modelId: string): RerankingModelV3;
}

/** Name of the provider in the AI SDK, and in its telemetry. */
const NAME = "tritonjs";

/**
 * A provider of the AI SDK over the models of a `Triton`, in process and without a server. Language models are those
 * that the OpenAI endpoints have: with tools, structured output, reasoning and streams. Embedding models are called
 * directly. A reranking model is a cross-encoder, or makes embeddings.
 *
 * @param options as for the OpenAI endpoints: chat templates, families of tool calls
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * import { generateText } from "ai";
 *
 * const provider = tritonProvider(triton);
 * const { text } = await generateText({ model: provider("llama"), prompt: "Hello" });
 * ```
 */
export function tritonProvider(
  triton: InProcessTriton,
  options: OpenAiFetchHandlerOptions = {},
): TritonProvider {
  const send = inProcessFetch(triton, options);
  const compatible = createOpenAICompatible({
    name: NAME,
    baseURL: BASE_URL,
    includeUsage: true,
    supportsStructuredOutputs: true,
    fetch: send,
  });
  const languageModel = (modelId: string): LanguageModelV3 => compatible.languageModel(modelId);
  const embeddingModel = (modelId: string): EmbeddingModelV3 => ({
    specificationVersion: "v3",
    provider: `${NAME}.embedding`,
    modelId,
    maxEmbeddingsPerCall: Number.POSITIVE_INFINITY,
    supportsParallelCalls: true,
    async doEmbed({ values, abortSignal }) {
      const { embeddings, tokens } = await embedTexts(triton, modelId, values, abortSignal);
      return { embeddings, warnings: [], ...(tokens !== undefined && { usage: { tokens } }) };
    },
  });
  const rerankingModel = (modelId: string): RerankingModelV3 => ({
    specificationVersion: "v3",
    provider: `${NAME}.reranking`,
    modelId,
    async doRerank({ documents: { type, values }, query, topN, abortSignal }) {
      const texts = type === "text" ? values : values.map((value) => JSON.stringify(value));
      const ranked = await rankTexts(send, modelId, query, texts, topN, abortSignal);
      return { ranking: ranked.map(({ index, score }) => ({ index, relevanceScore: score })) };
    },
  });
  return Object.assign((modelId: string) => languageModel(modelId), {
    specificationVersion: "v3" as const,
    languageModel,
    embeddingModel,
    rerankingModel,
  });
}
