import type { InferInit, RequestTrace } from "@tritonjs/core/frontend";
import { NO_PARAMETERS, type Parameters, type Tensor } from "@tritonjs/protocol";
import { ALL_IN_JSON, type OutputForms } from "./requested-outputs.js";

const NO_INPUTS: ReadonlyMap<string, Tensor> = new Map();
const NO_NAMES: readonly string[] = [];

/**
 * A request as the client wrote it. Readers fill it in, and the model's request is made directly from it. `outputs`
 * says how the client wants the outputs.
 */
export class DecodedRequest implements InferInit {
  id = "";
  inputs = NO_INPUTS;
  requestedOutputs = NO_NAMES;
  parameters: Parameters = NO_PARAMETERS;
  priority = 0;
  queueTimeoutMicroseconds = 0;
  correlationId: bigint | string | undefined = undefined;
  sequenceStart = false;
  sequenceEnd = false;
  trace: RequestTrace | undefined = undefined;
  onInputsUsed: (() => void) | undefined = undefined;
  outputs: OutputForms = ALL_IN_JSON;

  /** The same request with other tensors. */
  withInputs(inputs: ReadonlyMap<string, Tensor>): DecodedRequest {
    const request = new DecodedRequest();
    // Property by property: a spread looks each property up at run time, which takes longer than the rest of this
    // function.
    request.id = this.id;
    request.inputs = inputs;
    request.requestedOutputs = this.requestedOutputs;
    request.parameters = this.parameters;
    request.priority = this.priority;
    request.queueTimeoutMicroseconds = this.queueTimeoutMicroseconds;
    request.correlationId = this.correlationId;
    request.sequenceStart = this.sequenceStart;
    request.sequenceEnd = this.sequenceEnd;
    request.outputs = this.outputs;
    return request;
  }

  /** The same request without its tensors. */
  withoutInputs(): DecodedRequest {
    return this.withInputs(NO_INPUTS);
  }
}
