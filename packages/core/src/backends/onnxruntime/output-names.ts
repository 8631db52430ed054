import type { ModelConfig } from "@tritonjs/protocol";
import { sequenceTensors } from "../../config/schema/sequence-batching.js";

/** Outputs that the model has to compute: those of the configuration, and the states of sequences. */
export function outputNamesOf({
  output,
  sequenceBatching,
}: Pick<ModelConfig, "output" | "sequenceBatching">): readonly string[] {
  // The file may have more outputs than the model was bound with.
  return [...new Set([...output.map(({ name }) => name), ...sequenceTensors(sequenceBatching).outputs])];
}
