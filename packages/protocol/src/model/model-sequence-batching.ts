/** Information that a control tensor gives the model. */
export type SequenceControlKind =
  | "CONTROL_SEQUENCE_START"
  | "CONTROL_SEQUENCE_READY"
  | "CONTROL_SEQUENCE_END"
  | "CONTROL_SEQUENCE_CORRID";

/** A control and its values for false and true. The correlation id has a data type instead. */
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
  /** Every sequence has its own slot of the batch. This is the default strategy. */
  direct?: { maxQueueDelayMicroseconds: number; minimumSlotUtilization: number };
  /** The next requests of all sequences join in order of arrival. */
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
