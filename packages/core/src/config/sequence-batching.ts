/** What a control tensor tells the model. */
export type SequenceControlKind =
  | "CONTROL_SEQUENCE_START"
  | "CONTROL_SEQUENCE_READY"
  | "CONTROL_SEQUENCE_END"
  | "CONTROL_SEQUENCE_CORRID";

/** A control and its values for false and true; the correlation id has a data type instead. */
export interface SequenceControl {
  kind: SequenceControlKind;
  int32FalseTrue: number[];
  fp32FalseTrue: number[];
  boolFalseTrue: boolean[];
  dataType: string;
}

/** A tensor that Triton keeps between the requests of a sequence. */
export interface SequenceStateTensor {
  inputName: string;
  outputName: string;
  dataType: string;
  dims: number[];
  initialState: { dataType: string; dims: number[]; zeroData?: boolean; dataFile?: string; name: string }[];
  useSameBufferForInputOutput: boolean;
  useGrowableMemory: boolean;
}

/** How sequences are scheduled: requests with one correlation id go to one instance, one after the other. */
export interface ModelSequenceBatching {
  /** Every sequence has a slot of the batch of its own; without a strategy this is the one. */
  direct?: { maxQueueDelayMicroseconds: number; minimumSlotUtilization: number };
  /** The next requests of all sequences join in the order in which they came. */
  oldest?: {
    maxCandidateSequences: number;
    preferredBatchSize: number[];
    maxQueueDelayMicroseconds: number;
    preserveOrdering: boolean;
  };
  maxSequenceIdleMicroseconds: number;
  controlInput: { name: string; control: SequenceControl[] }[];
  state: SequenceStateTensor[];
  iterativeSequence: boolean;
}

/** How long a sequence may be without a request unless the configuration says so: Triton's second. */
const DEFAULT_SEQUENCE_IDLE_MICROSECONDS = 1_000_000;

/** Fills what follows from other fields. */
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

/** Names of the tensors that the sequence batcher exchanges with the model, and no client sends or gets. */
export function sequenceTensors(sequences: ModelSequenceBatching | undefined) {
  const { controlInput = [], state = [] } = sequences ?? {};
  return {
    inputs: [...controlInput.map(({ name }) => name), ...state.map(({ inputName }) => inputName)],
    outputs: state.map(({ outputName }) => outputName),
  };
}

/** Sequences that an instance takes at a time. */
export function sequenceSlots({
  sequenceBatching,
  maxBatchSize,
}: {
  readonly sequenceBatching?: ModelSequenceBatching;
  readonly maxBatchSize: number;
}): number {
  return sequenceBatching?.oldest?.maxCandidateSequences || Math.max(1, maxBatchSize);
}
