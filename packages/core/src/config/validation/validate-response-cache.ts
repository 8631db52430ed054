import { isDecoupled, type ModelConfig } from "@tritonjs/protocol";

/** What keeps a model from having its responses cached, with Triton's text; sequences have theirs with them. */
export function responseCacheProblems(config: ModelConfig): string[] {
  if (!config.responseCache?.enable || !isDecoupled(config)) return [];
  return [
    `Response Cache does not currently support model ${config.name} with 'decoupled' transaction policy. ` +
      "Please disable the response cache.",
  ];
}
