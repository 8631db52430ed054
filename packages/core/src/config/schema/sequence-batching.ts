import type { ModelSequenceBatching } from "@tritonjs/protocol";

/** Default time that a sequence may be idle, in microseconds: Triton's second. */
const DEFAULT_SEQUENCE_IDLE_MICROSECONDS = 1_000_000;

/** Fills fields that follow from others. */
export function normalizeSequenceBatching(
  sequences: ModelSequenceBatching,
  maxBatchSize: number,
): ModelSequenceBatching {
  const { oldest, maxSequenceIdleMicroseconds: idle } = sequences;
  const normal = { ...sequences, maxSequenceIdleMicroseconds: idle || DEFAULT_SEQUENCE_IDLE_MICROSECONDS };
  if (oldest?.preferredBatchSize.length === 0 && maxBatchSize > 0) {
    normal.oldest = { ...oldest, preferredBatchSize: [maxBatchSize] };
  }
  return normal;
}

/** Names of the tensors that the sequence batcher exchanges with the model. Clients neither send nor receive them. */
export function sequenceTensors(sequences: ModelSequenceBatching | undefined) {
  const { controlInput = [], state = [] } = sequences ?? {};
  return {
    inputs: [...controlInput.map(({ name }) => name), ...state.map(({ inputName }) => inputName)],
    outputs: state.map(({ outputName }) => outputName),
  };
}

/** Number of sequences that an instance takes at a time. */
export function sequenceSlots({
  sequenceBatching,
  maxBatchSize,
}: {
  readonly sequenceBatching?: ModelSequenceBatching;
  readonly maxBatchSize: number;
}): number {
  return sequenceBatching?.oldest?.maxCandidateSequences || Math.max(1, maxBatchSize);
}
