import { Tensor } from "@tritonjs/protocol";
import type { DataSet } from "../data/data-set.js";
import type { PayloadInputs } from "../report/profile-export.js";
import { outputsJson } from "../target/outputs-json.js";

/** Inputs of the payloads of a data set as JSON text, for the profile export. */
export function payloadInputs(data: DataSet): PayloadInputs {
  if (data.kind === "openai")
    return (payload) => `{"payload":${JSON.stringify(data.payloads[payload] ?? "")}}`;
  return (payload) => {
    const inputs = data.payloads[payload]?.inputs;
    // Each request replaces fresh values with others, which nobody records.
    if (inputs === undefined || inputs.some(({ fresh }) => fresh !== undefined)) return undefined;
    return outputsJson(
      new Map(
        inputs.map(
          ({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)] as const,
        ),
      ),
    );
  };
}
