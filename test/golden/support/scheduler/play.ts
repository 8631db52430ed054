import {
  type DataType,
  InferenceRequest,
  type InferenceResponse,
  Tensor,
  Triton,
  TritonError,
  typedArrayFor,
  VirtualClock,
} from "@tritonjs/core";
import { identity, toInferFunc } from "../behaviours/behaviour.js";
import { Recorder } from "../behaviours/recorder.js";
import { type ParsedConfig, parseConfigText } from "../config-text.js";
import { grpcCodeName } from "../grpc-code.js";
import type { Action, Outcome, ResponseRecord, Scenario, TensorText } from "./scenario.js";
import { statisticsRecord } from "./statistics-record.js";

/** Answers closer together than this arrive as one group. */
const GROUP_GAP_MS = 12;

/** Longest that anything in a scenario waits after its last action. */
const LAST_WAIT_MS = 12_000;

interface Arrival {
  readonly id: string;
  readonly at: number;
}

/** Plays a scenario on a virtual clock and tells what came of it. */
export async function play(scenario: Scenario): Promise<Outcome> {
  const clock = new VirtualClock();
  const held = scenario.env.TRITONSERVER_DELAY_SCHEDULER;
  const triton = new Triton({ clock, ...(held === undefined ? {} : { delayScheduler: Number(held) }) });
  const config = parseConfigText(scenario.config_pbtxt, scenario.id);
  const recorder = new Recorder(config, clock);
  const inferFunc = scenario.model_behaviour === "recorder" ? recorder.inferFunc : identityFunc(config);
  triton.bind({ modelName: scenario.id, inferFunc: inferFunc as never, modelConfig: config });
  await clock.settle();
  const started = clock.now();
  const client = new Client(triton, scenario.id, clock);
  for (const action of scenario.actions) {
    await clock.advance(started + action.at_ms - clock.now());
    client.act(action);
  }
  await clock.advance(LAST_WAIT_MS);
  const [report] = triton.service.statistics(scenario.id, "");
  const outcome: Outcome = {
    executions: recorder.executions,
    responses: client.responses,
    arrival_order: groups(client.arrivals),
    statistics: statisticsRecord(report),
  };
  await triton.close();
  return outcome;
}

/** Why the model of a scenario cannot be bound; `undefined` when it can. */
export function refusalOf({ id, config_pbtxt: text }: Scenario): string | undefined {
  const config = parseConfigText(text, id);
  try {
    new Triton().bind({ modelName: id, inferFunc: identityFunc(config) as never, modelConfig: config });
  } catch (error) {
    return TritonError.from(error).message;
  }
  return undefined;
}

function identityFunc({ input = [], output = [] }: ParsedConfig) {
  return toInferFunc(identity, {
    version: 1,
    inputNames: input.map(({ name }) => name),
    outputNames: output.map(({ name }) => name),
    sleep: async () => {},
  });
}

/** The client of a scenario: calls the service in process, gives up when told to. */
class Client {
  readonly responses: ResponseRecord[] = [];
  readonly arrivals: Arrival[] = [];
  readonly #requests = new Map<string, InferenceRequest>();

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
    if (!this.responses.some((response) => response.id === id)) {
      this.#arrive({ id, ok: false, code: "CANCELLED(client)", message: "" });
    }
    this.#requests.get(id)?.cancel();
  }

  #infer(action: Action): void {
    const { id, sequence } = action;
    const request = new InferenceRequest({
      modelName: action.model ?? this.modelName,
      id: action.request_id ?? id,
      inputs: new Map(Object.entries(action.in ?? {}).map(([name, text]) => [name, toTensor(text)])),
      requestedOutputs: action.outputs,
      parameters: action.parameters,
      priority: action.priority,
      timeoutMicroseconds: action.timeout_us,
      correlationId: typeof sequence?.id === "number" ? BigInt(sequence.id) : sequence?.id,
      sequenceStart: sequence?.start,
      sequenceEnd: sequence?.end,
      onResponse: (outcome) => this.#answer(id, outcome),
    });
    this.#requests.set(id, request);
    try {
      this.triton.service.infer(request);
    } catch (error) {
      this.#answer(id, TritonError.from(error));
    }
  }

  #answer(id: string, outcome: InferenceResponse | TritonError | undefined): void {
    const given = this.responses.some(
      (response) => response.id === id && response.code === "CANCELLED(client)",
    );
    if (outcome === undefined || given) return;
    if (outcome instanceof TritonError) {
      this.#arrive({ id, ok: false, code: grpcCodeName(outcome.code), message: outcome.message });
    } else {
      this.#arrive({ id, ok: true, outputs: toTexts(outcome) });
    }
  }

  #arrive(response: ResponseRecord): void {
    this.responses.push(response);
    this.arrivals.push({ id: response.id, at: this.clock.now() });
  }
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

function groups(arrivals: readonly Arrival[]): string[][] {
  const grouped: string[][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const { id, at } of arrivals) {
    if (at - last > GROUP_GAP_MS) grouped.push([]);
    grouped.at(-1)?.push(id);
    last = at;
  }
  return grouped.map((group) => group.sort());
}
