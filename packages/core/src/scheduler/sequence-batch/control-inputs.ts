import {
  type DataType,
  fromConfigDataType,
  type ModelConfig,
  type SequenceControl,
  Tensor,
} from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";

import type { SequencePlace } from "../../request/sequence-info.js";

/** Values of the control inputs for one request. */
export interface ControlValues extends SequencePlace {
  /** False for a null request; all others are then false, zero or empty too. */
  readonly ready: boolean;
}

/**
 * Makes the tensors that tell a model the position of a request in its sequence. Each has one element, and the shape
 * `[1]`, or `[1, 1]` for a model with a batch axis.
 */
export class ControlInputs {
  readonly #controls: readonly { readonly name: string; readonly control: SequenceControl }[];
  readonly #shape: readonly number[];

  constructor(config: ModelConfig) {
    const inputs = config.sequenceBatching?.controlInput ?? [];
    this.#controls = inputs.flatMap(({ name, control }) => control.map((one) => ({ name, control: one })));
    this.#shape = config.maxBatchSize > 0 ? [1, 1] : [1];
  }

  /** Adds the controls to the inputs of a request. */
  addTo(inputs: Tensors, values: ControlValues): Tensors {
    if (this.#controls.length === 0) return inputs;
    const all = new Map(inputs);
    for (const { name, control } of this.#controls) all.set(name, this.#tensor(control, values));
    return all;
  }

  #tensor(control: SequenceControl, values: ControlValues): Tensor {
    switch (control.kind) {
      case "CONTROL_SEQUENCE_START":
        return this.#flag(control, values.ready && values.sequenceStart);
      case "CONTROL_SEQUENCE_END":
        return this.#flag(control, values.ready && values.sequenceEnd);
      case "CONTROL_SEQUENCE_READY":
        return this.#flag(control, values.ready);
      case "CONTROL_SEQUENCE_CORRID":
        return this.#id(
          fromConfigDataType(control.dataType)!,
          values.ready ? values.correlationId : undefined,
        );
    }
  }

  #flag({ int32FalseTrue, fp32FalseTrue, boolFalseTrue }: SequenceControl, value: boolean): Tensor {
    const index = value ? 1 : 0;
    if (int32FalseTrue.length > 0) {
      return Tensor.fromElements("INT32", this.#shape, Int32Array.of(int32FalseTrue[index]!));
    }
    if (fp32FalseTrue.length > 0) {
      return Tensor.fromElements("FP32", this.#shape, Float32Array.of(fp32FalseTrue[index]!));
    }
    return Tensor.fromElements("BOOL", this.#shape, Uint8Array.of(boolFalseTrue[index] ? 1 : 0));
  }

  /** An id that is too large for its data type loses its upper bits, as in Triton. */
  #id(datatype: DataType, id: bigint | string | undefined): Tensor {
    if (datatype === "BYTES") {
      return Tensor.fromElements("BYTES", this.#shape, [
        Buffer.from(typeof id === "string" ? id : "", "utf8"),
      ]);
    }
    const number = typeof id === "bigint" ? id : 0n;
    if (datatype === "UINT64") {
      return Tensor.fromElements(datatype, this.#shape, BigUint64Array.of(BigInt.asUintN(64, number)));
    }
    if (datatype === "INT64") {
      return Tensor.fromElements(datatype, this.#shape, BigInt64Array.of(BigInt.asIntN(64, number)));
    }
    const low = Number(BigInt.asUintN(32, number));
    const elements = datatype === "UINT32" ? Uint32Array.of(low) : Int32Array.of(low);
    return Tensor.fromElements(datatype, this.#shape, elements);
  }
}
