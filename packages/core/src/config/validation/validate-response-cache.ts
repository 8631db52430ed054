import { isDecoupled, type ModelConfig } from "@tritonjs/protocol";

/**
 * Lists reasons why a model's responses cannot be cached, with Triton's text. Those about sequences are checked with
 * the sequences.
 */
export function responseCacheProblems(config: ModelConfig): string[] {
  if (!config.responseCache?.enable || !isDecoupled(config)) return [];
  return [
    `Response Cache does not currently support model ${config.name} with 'decoupled' transaction policy. ` +
      "Please disable the response cache.",
  ];
}
