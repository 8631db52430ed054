import { type DataType, type Parameters, Tensor, type Triton, TritonError } from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { isDecoupled, typedArrayFor } from "@tritonjs/protocol";
import { type InferenceResponse, serviceOf } from "@tritonjs/server";
import type { VirtualClock } from "@tritonjs/testing";
import { sendRequest } from "../../../support/send-request.js";
import { grpcCodeName } from "../grpc-code.js";
import type { Action, ResponseRecord, TensorText } from "./scenario.js";

/** Time when an answer came. */
export interface Arrival {
  readonly id: string;
  /** Milliseconds on the scenario's clock. */
  readonly at: number;
}

/** The end of a request that the client cancelled, whatever the server did. */
const GIVEN_UP = "CANCELLED(client)";

/** The client of a scenario: it calls the service in process, and cancels when the scenario says so. */
export class Client {
  readonly responses: ResponseRecord[] = [];
  readonly arrivals: Arrival[] = [];
  readonly #requests = new Map<string, RequestHandle>();
  /** Ids whose last answer has come, or whose client cancelled. */
  readonly #ended = new Set<string>();

  constructor(
    readonly triton: Triton,
    readonly modelName: string,
    readonly clock: VirtualClock,
  ) {}

  act(action: Action): void {
    if (action.do === "cancel") this.#cancel(action.id);
    else if (action.do === "infer") this.#infer(action);
    else throw new Error(`cannot play '${action.do}'`);
  }

  #cancel(id: string): void {
    if (!this.#ended.has(id)) this.#arrive({ id, ok: false, code: GIVEN_UP, message: "" });
    this.#ended.add(id);
    this.#requests.get(id)?.cancel();
  }

  #infer(action: Action): void {
    const { id, sequence, stream } = action;
    const modelName = action.model ?? this.modelName;
    const init = {
      id: action.request_id ?? id,
      inputs: new Map(Object.entries(action.in ?? {}).map(([name, text]) => [name, toTensor(text)])),
      requestedOutputs: action.outputs,
      parameters: action.parameters,
      priority: action.priority,
      queueTimeoutMicroseconds: action.timeout_us,
      correlationId: typeof sequence?.id === "number" ? BigInt(sequence.id) : sequence?.id,
      sequenceStart: sequence?.start,
      sequenceEnd: sequence?.end,
    };
    try {
      const model = serviceOf(this.triton).model(modelName, "");
      if (!stream && isDecoupled(model.config)) throw decoupledError();
      const request = sendRequest(model, init, (outcome, final) => this.#answer(action, outcome, final));
      this.#requests.set(id, request);
    } catch (error) {
      this.#answer(action, TritonError.from(error), true);
    }
  }

  #answer(
    { id, stream }: Action,
    outcome: InferenceResponse | TritonError | undefined,
    final: boolean,
  ): void {
    if (this.#ended.has(id)) return;
    if (final) this.#ended.add(id);
    // A stream marks the last answer, with an empty one if need be, and has no code for an error.
    const last: Parameters = stream ? { triton_final_response: final } : {};
    if (outcome instanceof TritonError) {
      const code = stream ? undefined : grpcCodeName(outcome.code);
      this.#arrive({ id, ok: false, code, message: outcome.message });
    } else if (outcome !== undefined || stream) {
      const parameters = { ...outcome?.parameters, ...last };
      this.#arrive({ id, ok: true, outputs: outcome ? toTexts(outcome) : {}, parameters });
    }
  }

  #arrive(response: ResponseRecord): void {
    this.responses.push(response);
    this.arrivals.push({ id: response.id, at: this.clock.now() });
  }
}

/** The gRPC frontend rejects a unary call to a decoupled model. */
function decoupledError(): TritonError {
  return new TritonError(
    "UNSUPPORTED",
    "ModelInfer RPC doesn't support models with decoupled transaction policy",
  );
}

function toTensor({ datatype, shape, data }: TensorText): Tensor {
  const array = typedArrayFor(datatype as Exclude<DataType, "BYTES">) as unknown as Int32ArrayConstructor;
  return Tensor.fromElements(datatype, shape, array.from(data));
}

function toTexts(response: InferenceResponse): Record<string, TensorText> {
  const texts = [...response.outputs].map(([name, { datatype, shape, elements }]): [string, TensorText] => [
    name,
    { datatype, shape, data: [...(elements as Int32Array)] },
  ]);
  return Object.fromEntries(texts);
}
