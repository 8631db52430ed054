import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  fromConfigDataType,
  type ModelConfig,
  type SequenceStateTensor,
  type Shape,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { ReadDataFile } from "../../files/data-file.js";

import { stateProblems } from "../validation/validate-sequence-states.js";

/** Initial states of sequences. */
export interface InitialStates {
  /** States by the name of the state's input, with the batch axis if the model has one. */
  readonly states: ReadonlyMap<string, Tensor>;
  /** Problems with the data, with Triton's texts. */
  readonly problems: readonly TritonError[];
}

/**
 * Makes the initial states of a model's sequences: zeros (or empty strings) unless the configuration names a file. A
 * state without `initial_state` starts with zeros too, where Triton would leave its memory uninitialized.
 *
 * @param readFile reads a `data_file`; a model repository has these files in the model's folder `initial_state/`
 */
export function initialStates(config: ModelConfig, readFile: ReadDataFile): InitialStates {
  const states = new Map<string, Tensor>();
  const problems: TritonError[] = [];
  for (const state of config.sequenceBatching?.state ?? []) {
    if (stateProblems(config, state).length > 0) continue;
    try {
      states.set(state.inputName, initialState(state, config.maxBatchSize > 0, readFile));
    } catch (error) {
      problems.push(TritonError.from(error));
    }
  }
  return { states, problems };
}

function initialState(state: SequenceStateTensor, batched: boolean, readFile: ReadDataFile): Tensor {
  const [initial] = state.initialState;
  const datatype = fromConfigDataType(state.dataType)!;
  const dims = initial?.dims ?? state.dims.map((dim) => (dim === -1 ? 1 : dim));
  const file = initial?.dataFile;
  const data = file === undefined ? zeros(datatype, dims) : fileData(state, datatype, dims, file, readFile);
  return Tensor.fromBytes(datatype, batched ? [1, ...dims] : dims, data);
}

function zeros(datatype: DataType, dims: Shape): Uint8Array {
  const count = elementCount(dims);
  return datatype === "BYTES"
    ? encodeBytes(Array.from({ length: count }, () => new Uint8Array()))
    : new Uint8Array(count * elementByteSize(datatype));
}

function fileData(
  { inputName }: SequenceStateTensor,
  datatype: DataType,
  dims: Shape,
  file: string,
  readFile: ReadDataFile,
): Uint8Array {
  const data = readFile(file);
  const count = elementCount(dims);
  if (datatype === "BYTES") {
    const got = Tensor.fromBytes(datatype, dims, data).elements.length;
    if (got === count) return new Uint8Array(data);
    throw new TritonError(
      "INVALID_ARG",
      `initial_state for state input '${inputName}': expected ${count} elements, got ${got} from ${file}`,
      { reason: "INVALID_CONFIG" },
    );
  }
  const expected = count * elementByteSize(datatype);
  if (data.byteLength < expected) {
    throw new TritonError(
      "INVALID_ARG",
      `initial_state setting expects ${expected} bytes, but the data provided from ${file}only has ` +
        `${data.byteLength} bytes.`,
      { reason: "INVALID_CONFIG" },
    );
  }
  return new Uint8Array(data.subarray(0, expected));
}
