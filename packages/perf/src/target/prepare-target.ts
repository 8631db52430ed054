import { randomBytes } from "node:crypto";
import { InferenceRequest, readScalarOptions } from "@tritonjs/core/internal";
import { Tensor, TritonError } from "@tritonjs/protocol";
import { Exchange, type InferenceResponse, serviceOf } from "@tritonjs/server";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";
import { cleanUpAtExit } from "../command/exit-cleanups.js";
import { invalidOption } from "../command/tool-errors.js";
import type { DataSet, TensorDataSet, TestedModel } from "../data/data-set.js";
import {
  type EndListener,
  type ExpectedOutputs,
  epochNow,
  type LoadCarrier,
  type LoadRequest,
  OutputReader,
} from "./carrier.js";
import { grpcInferTemplates, isStamped } from "./grpc-templates.js";
import { httpInferTemplates } from "./http-inference.js";
import { openCarrier, type RemoteCarrierPlan } from "./open-carrier.js";
import { conversationPlan, openAiTemplates } from "./openai-target.js";
import { grpcClientOf, grpcEndpoint, httpClientOf, httpEndpoint, readModel } from "./read-model.js";
import {
  authorityOf,
  type GrpcTargetOptions,
  type HttpTargetOptions,
  type InProcessTargetOptions,
  type OpenAiTargetOptions,
  type TargetOptions,
} from "./target-options.js";
import { FreshValues, type RegionPart, type SharedPayload } from "./wire-template.js";

/** A target with everything that is prepared once. */
export interface PreparedTarget {
  readonly plan?: RemoteCarrierPlan;
  openCarrier(seed: number, onEnd: EndListener): LoadCarrier;
  /** Undefined for OpenAI endpoints. */
  readonly model?: TestedModel;
  /** Requests of a sequence arrive in the order in which they were sent, while several of them are in flight. */
  readonly keepsOrder: boolean;
  release(): Promise<void>;
}

/** perf_analyzer's. */
const OUTPUT_REGION_BYTES = 102_400;

/** Prepares the requests of a data set for a target. */
export async function prepareTarget(
  target: TargetOptions,
  data: DataSet,
  keepsOutputs: boolean,
): Promise<PreparedTarget> {
  if (target.kind === "openai") return prepareOpenAi(target, data, keepsOutputs);
  if (data.kind !== "tensors")
    throw invalidOption(`target '${target.kind}': expected tensors, got OpenAI payloads`);
  const model = await readModel(target);
  if (target.kind === "in-process")
    return {
      model,
      keepsOrder: true,
      openCarrier: (seed, onEnd) => new InProcessCarrier(target, model, data, keepsOutputs, seed, onEnd),
      release: async () => {},
    };
  if (model.decoupled && !(target.kind === "grpc" && target.streaming === true))
    throw invalidOption(
      `model '${model.name}' is decoupled: expected gRPC with streaming (-i grpc --streaming), got ${
        target.kind === "grpc" ? "gRPC without streaming" : "HTTP"
      }`,
    );
  const client = target.kind === "http" ? httpClientOf(target) : grpcClientOf(target);
  const { sharedMemory = "none", outputSharedMemorySize = OUTPUT_REGION_BYTES } = target;
  let shared: SharedData | undefined;
  const release = async (): Promise<void> => {
    await shared?.release();
    client.close();
  };
  try {
    if (sharedMemory === "system") shared = await placeInRegions(client, model, data, outputSharedMemorySize);
    const outputs = { expected: expectedOf(data, shared), keepsOutputs };
    const plan =
      target.kind === "http"
        ? { ...httpPlan(target, model, data, shared), ...outputs }
        : { ...grpcPlan(target, model, data, shared), ...outputs };
    return remote(plan, model, release);
  } catch (cause) {
    await release();
    throw cause;
  }
}

function remote(
  plan: RemoteCarrierPlan,
  model?: TestedModel,
  release = async (): Promise<void> => {},
): PreparedTarget {
  return {
    plan,
    model,
    keepsOrder: plan.kind === "grpc" && plan.streaming,
    openCarrier: (seed, onEnd) => openCarrier(plan, seed, onEnd),
    release,
  };
}

function httpPlan(target: HttpTargetOptions, model: TestedModel, data: TensorDataSet, shared?: SharedData) {
  const endpoint = httpEndpoint(target);
  const templates = httpInferTemplates(data, model, target, endpoint, shared?.payloads);
  return { kind: "http", endpoint, templates } as const;
}

function grpcPlan(target: GrpcTargetOptions, model: TestedModel, data: TensorDataSet, shared?: SharedData) {
  const { compression, streaming = false, headers = {} } = target;
  const endpoint = grpcEndpoint(target);
  const method = streaming ? "ModelStreamInfer" : "ModelInfer";
  return {
    kind: "grpc",
    endpoint,
    templates: grpcInferTemplates(data, model, target, shared?.payloads),
    streaming,
    decoupled: model.decoupled,
    compression: isStamped(target, model) ? compression : undefined,
    headers: [
      [":method", "POST"],
      [":scheme", endpoint.tls === undefined ? "http" : "https"],
      [":path", `/inference.GRPCInferenceService/${method}`],
      [":authority", authorityOf(endpoint)],
      ["te", "trailers"],
      ["content-type", "application/grpc"],
      ["grpc-accept-encoding", "identity,gzip,deflate"],
      ...(compression === undefined ? [] : [["grpc-encoding", compression] as const]),
      ...Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const),
    ],
  } as const;
}

function prepareOpenAi(target: OpenAiTargetOptions, data: DataSet, keepsOutputs: boolean): PreparedTarget {
  if (data.kind !== "openai")
    throw invalidOption("OpenAI target: expected payloads of OpenAI requests, got tensors");
  const endpoint = httpEndpoint(target);
  const templates = openAiTemplates(data, target, endpoint);
  const conversations = data.sessions && conversationPlan(data, target, endpoint);
  return remote({ kind: "openai", endpoint, templates, keepsOutputs, conversations });
}

/** @throws TritonError INVALID_ARG for outputs in shared memory, which requests in flight overwrite. */
function expectedOf(
  { payloads }: TensorDataSet,
  shared: SharedData | undefined,
): ExpectedOutputs | undefined {
  const expected = payloads.map((payload) => payload.expected);
  if (expected.every((outputs) => outputs === undefined)) return undefined;
  if (shared === undefined) return expected;
  throw invalidOption(
    "validation_data: outputs in shared memory cannot be compared; expected --shared-memory none",
  );
}

interface RegionClient {
  registerSystemSharedMemory(
    name: string,
    region: { readonly key: string; readonly byteSize: number },
  ): Promise<void>;
  unregisterSystemSharedMemory(name: string): Promise<void>;
}

interface SharedData {
  readonly payloads: readonly SharedPayload[];
  release(): Promise<void>;
}

/** Regions of concurrent responses would overlap anyway; offsets are aligned for the widest element. */
const ALIGNMENT = 64;

/**
 * Writes the inputs of all payloads into one region for each input, creates a region for each output, and registers
 * them at the server. Responses write into the same output regions, as with perf_analyzer.
 */
async function placeInRegions(
  client: RegionClient,
  model: TestedModel,
  data: TensorDataSet,
  outputByteSize: number,
): Promise<SharedData> {
  const prefix = `tritonjs_perf_${process.pid}_${randomBytes(4).toString("hex")}`;
  const regions: { readonly name: string; readonly region: SharedMemoryRegion; isRegistered: boolean }[] = [];
  const forget = cleanUpAtExit(() => {
    for (const { region } of regions) region.destroy();
  });
  const release = async (): Promise<void> => {
    for (const { name, region, isRegistered } of regions) {
      // The server may be gone.
      if (isRegistered) await client.unregisterSystemSharedMemory(name).catch(() => {});
      region.destroy();
    }
    forget();
  };
  const create = async (name: string, byteSize: number): Promise<SharedMemoryRegion> => {
    const region = await SharedMemoryRegion.create(`/${name}`, Math.max(1, byteSize), { createOnly: true });
    const entry = { name, region, isRegistered: false };
    regions.push(entry);
    await client.registerSystemSharedMemory(name, { key: region.key, byteSize: region.byteSize });
    entry.isRegistered = true;
    return region;
  };
  try {
    const inputs: Map<string, RegionPart>[] = data.payloads.map(() => new Map());
    for (const [index, { name }] of model.inputs.entries()) {
      const regionName = `${prefix}_input_${index}`;
      let byteSize = 0;
      data.payloads.forEach((payload, i) => {
        const tensor = payload.inputs.find((input) => input.name === name);
        if (tensor === undefined) return;
        inputs[i]!.set(name, { region: regionName, offset: byteSize, byteSize: tensor.bytes.length });
        byteSize += Math.ceil(tensor.bytes.length / ALIGNMENT) * ALIGNMENT;
      });
      if (byteSize === 0) continue;
      const region = await create(regionName, byteSize);
      data.payloads.forEach((payload, i) => {
        const part = inputs[i]!.get(name);
        const tensor = payload.inputs.find((input) => input.name === name);
        if (part !== undefined && tensor !== undefined) region.write(tensor.bytes, part.offset);
      });
    }
    const outputs = new Map<string, RegionPart>();
    for (const [index, { name }] of model.outputs.entries()) {
      const region = `${prefix}_output_${index}`;
      await create(region, outputByteSize);
      outputs.set(name, { region, offset: 0, byteSize: outputByteSize });
    }
    return { payloads: inputs.map((parts) => ({ inputs: parts, outputs })), release };
  } catch (cause) {
    await release();
    throw cause;
  }
}

/** Refusals are answers of a load, so they come at once. */
const AT_ONCE = { mayWait: false };

/** Calls a model in this process as a frontend does: through its queue, without a network. */
class InProcessCarrier implements LoadCarrier {
  readonly bytesSent = 0;
  readonly bytesReceived = 0;
  readonly #outputs: OutputReader;
  readonly #payloads: readonly ReadonlyMap<string, Tensor>[];
  readonly #values: FreshValues;
  readonly #calls = new Set<InProcessCall>();
  readonly #ended: LoadRequest[] = [];
  #isClosed = false;

  constructor(
    private readonly target: InProcessTargetOptions,
    private readonly model: TestedModel,
    private readonly data: TensorDataSet,
    keepsOutputs: boolean,
    seed: number,
    private readonly onEnd: EndListener,
  ) {
    const expected = data.payloads.map((payload) => payload.expected);
    this.#outputs = new OutputReader(expected, keepsOutputs);
    this.#payloads = data.payloads.map(({ inputs }) => {
      const tensors = inputs.map(({ name, datatype, shape, bytes }) => {
        return [name, Tensor.fromBytes(datatype, shape, bytes)] as const;
      });
      return new Map(tensors);
    });
    this.#values = new FreshValues(seed);
  }

  send(request: LoadRequest): void {
    const call = new InProcessCall(request);
    this.#calls.add(call);
    request.carried = call;
    const inputs = this.#inputsOf(request);
    request.sent = epochNow();
    try {
      const service = serviceOf(this.target.source.triton);
      const { name, version } = this.model;
      call.exchange = new Exchange(service, undefined, service.model(name, version), version, AT_ONCE);
      const sent = new InferenceRequest(name, { inputs, parameters: { ...this.target.parameters } });
      const { sequenceId: id, sequenceStart: start, sequenceEnd: end } = request;
      if (id !== 0) readScalarOptions({ sequence: { id, start, end } }, sent);
      void call.exchange.send(sent, {
        respond: (outcome, final) => this.#answered(call, outcome, final),
        refuse: (cause) => this.#answered(call, TritonError.from(cause), true),
      });
      request.sendEnd = epochNow();
    } catch (cause) {
      this.#answered(call, TritonError.from(cause), true);
    }
  }

  cancel(request: LoadRequest, text: string): void {
    const call = request.carried as InProcessCall | undefined;
    // Without a call it has ended: the loop is told in the next turn.
    if (call === undefined) return;
    request.fail(text);
    request.end = epochNow();
    call.isOver = true;
    this.#calls.delete(call);
    call.exchange?.cancel();
    this.#end(request);
  }

  close(): void {
    this.#isClosed = true;
    for (const call of this.#calls) {
      call.isOver = true;
      call.exchange?.cancel();
    }
    this.#calls.clear();
  }

  #answered(call: InProcessCall, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (call.isOver) return;
    const { request } = call;
    const now = epochNow();
    if (outcome instanceof Error) request.fail(outcome.message);
    else if (outcome !== undefined) {
      request.responded(now);
      request.end = now;
      this.#outputs.read(request, () => outcome.outputs);
    }
    if (!final) return;
    call.isOver = true;
    this.#calls.delete(call);
    if (Number.isNaN(request.end) || request.failure !== undefined) request.end = now;
    this.#end(request);
  }

  /**
   * Tells the loop in the next turn of the event loop, as a socket would. The next request would else start in the same
   * turn, and a model that answers at once would block the event loop.
   */
  #end(request: LoadRequest): void {
    request.carried = undefined;
    if (this.#ended.push(request) > 1) return;
    setImmediate(() => {
      for (const ended of this.#ended.splice(0)) if (!this.#isClosed) this.onEnd(ended);
    });
  }

  /** The tensors of a payload; the one with fresh values is a copy. */
  #inputsOf(request: LoadRequest): ReadonlyMap<string, Tensor> {
    const payload = this.data.payloads[request.payload]!;
    const tensors = this.#payloads[request.payload]!;
    const input = payload.inputs.find(({ fresh }) => fresh !== undefined);
    if (input?.fresh === undefined) return tensors;
    const bytes = Uint8Array.from(input.bytes);
    this.#values.fill(bytes, input.fresh.offset, input.fresh.byteSize, input.datatype, request.number);
    return new Map(tensors).set(input.name, Tensor.fromBytes(input.datatype, input.shape, bytes));
  }
}

class InProcessCall {
  exchange: Exchange | undefined;
  isOver = false;

  constructor(readonly request: LoadRequest) {}
}
