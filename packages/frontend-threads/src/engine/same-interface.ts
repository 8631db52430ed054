import type { ModelConfig } from "@tritonjs/protocol";

/**
 * True if requests for one configuration are decoded in the same way for the other: their tensors, batch axes and kinds
 * of answers are the same.
 */
export function isSameInterface(a: ModelConfig, b: ModelConfig): boolean {
  return interfaceOf(a) === interfaceOf(b);
}

function interfaceOf({ input, output, maxBatchSize, modelTransactionPolicy }: ModelConfig): string {
  return JSON.stringify({ input, output, maxBatchSize, modelTransactionPolicy });
}
