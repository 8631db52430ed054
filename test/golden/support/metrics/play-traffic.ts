import { Tensor, Triton, TritonError } from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { sendRequest } from "../../../support/send-request.js";
import { servedOptions } from "../../../support/served-options.js";
import type { Behaviour, ModelRequest, ModelResult, PlayedModel } from "../behaviours/behaviour.js";
import { elements } from "../behaviours/tensors.js";
import { cacheOf } from "../cache-of.js";
import { quietLogger } from "../quiet-logger.js";
import { RepositoryFolder } from "../repository-folder.js";
import { repositoryOptions } from "../repository-options.js";
import { bindModels, readModels } from "../served-models.js";
import { customMetrics } from "./custom-metrics.js";
import { metricsConfigOf } from "./metrics-config-of.js";
import { type InferBody, repositoryModels, type TrafficCase, type TrafficStep } from "./traffic.js";

/** Time between requests that do not wait for each other. */
const BETWEEN_REQUESTS_MS = 100;

/** Longest duration of a request of the scripts. */
const ANSWER_WITHIN_MS = 5_000;

/** Plain inference with a decoupled model never leaves the frontend. */
const REFUSED_BY_HTTP = 501;

const httpStatus: Readonly<Record<string, number>> = { INTERNAL: 500, UNAVAILABLE: 503, NOT_FOUND: 404 };

/**
 * The Python model of the scripts: it waits as many seconds as its input says, and fails for negative and large
 * ones.
 */
async function waitSeconds({ inputs: { INPUT0 } }: ModelRequest, model: PlayedModel): Promise<ModelResult> {
  const seconds = (elements(INPUT0) as Float32Array)[0] ?? 0;
  if (seconds < 0) return new TritonError("INTERNAL", "refused");
  if (seconds >= 100) throw new Error("broken");
  await model.sleep(seconds * 1000);
  return { OUTPUT0: INPUT0 as NonNullable<typeof INPUT0> };
}

/** The models of a case on a virtual clock, and a client that plays its traffic in process. */
export class TrafficServer {
  readonly clock = new VirtualClock();
  readonly triton: Triton;
  /** Differences of answers from the recorded ones. */
  readonly differences: string[] = [];
  readonly #requests: RequestHandle[] = [];

  /** Serves the models of a case: bound by behaviour, or from a repository where the outcome shows its path. */
  static async start(recorded: TrafficCase): Promise<TrafficServer> {
    const inFolder = recorded.flags.includes("--model-namespacing=true");
    const folder = inFolder ? await RepositoryFolder.create(recorded.repository) : undefined;
    const server = new TrafficServer(recorded, folder);
    await server.triton.serve({ frontends: [] });
    return server;
  }

  private constructor(
    recorded: TrafficCase,
    private readonly folder: RepositoryFolder | undefined,
  ) {
    this.triton = new Triton(
      servedOptions({
        ...repositoryOptions(recorded.flags),
        ...(folder === undefined ? {} : { modelRepository: folder.path, logger: quietLogger }),
        clock: this.clock,
        responseCache: cacheOf(recorded.flags),
        metricsConfig: metricsConfigOf(recorded.flags),
      }),
    );
    if (folder !== undefined) return;
    const behaviours: Record<string, Behaviour> = { p: waitSeconds, q: waitSeconds };
    if (recorded.repository["cus/config.pbtxt"] !== undefined) {
      behaviours.cus = customMetrics(this.triton.metrics);
    }
    bindModels(this.triton, readModels(repositoryModels(recorded.repository)), behaviours, (ms) =>
      this.#sleep(ms),
    );
  }

  /** The metrics page. */
  async metrics(): Promise<string> {
    const page = await serviceOf(this.triton).metrics();
    return this.folder === undefined ? page : page.replaceAll(this.folder.path, "<REPO>");
  }

  async close(): Promise<void> {
    await this.triton.close();
    await this.folder?.remove();
  }

  async play(step: TrafficStep): Promise<void> {
    if (step.sleep_seconds !== undefined) await this.clock.advance(step.sleep_seconds * 1000);
    if (step.join) await this.#answered(this.#requests);
    const body = bodyOf(step);
    for (let i = 0; body !== undefined && i < (step.times ?? 1); i++) {
      const accepted = this.#infer(step, body);
      if (step.background) await this.clock.advance(BETWEEN_REQUESTS_MS);
      else await this.#answered(accepted);
    }
  }

  /** Sends a request; the list is empty when it is rejected. */
  #infer(step: TrafficStep, body: InferBody): readonly RequestHandle[] {
    const [, , , name = "", , version] = step.POST?.split("/") ?? ["", "", "", step["gRPC ModelInfer"]];
    const inputs = new Map(body.inputs.map((input) => [input.name, toTensor(input)]));
    const deadline = step.client_deadline_seconds;
    try {
      const model = serviceOf(this.triton).model(name, version ?? "");
      const request = sendRequest(model, { inputs }, (outcome) => this.#check(step, outcome));
      // The gRPC frontend gives a call up when its deadline passes.
      if (deadline !== undefined) this.clock.setTimer(deadline * 1000, () => void request.cancel());
      this.#requests.push(request);
      return [request];
    } catch (error) {
      this.#check(step, TritonError.from(error));
      return [];
    }
  }

  #check(step: TrafficStep, outcome: unknown): void {
    if (step.status === undefined) return;
    const failed = outcome instanceof TritonError;
    const status = failed ? (httpStatus[outcome.code] ?? 400) : 200;
    if (status !== step.status) this.differences.push(`status: expected ${step.status}, got ${status}`);
    const text = step.response?.error;
    const fromBackend = text?.startsWith("Failed to process the request(s)");
    if (failed && text !== undefined && !fromBackend && text !== outcome.message) {
      this.differences.push(`error: expected ${text}, got ${outcome.message}`);
    }
  }

  async #answered(requests: readonly RequestHandle[]): Promise<void> {
    const isWaiting = (): boolean => requests.some((request) => !request.settled);
    for (let waited = 0; isWaiting() && waited < ANSWER_WITHIN_MS; waited++) await this.clock.advance(1);
    if (isWaiting()) throw new Error("requests without an answer");
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimer(ms, resolve));
  }
}

/** The tensors of a step; none for an invalid request or one that the HTTP frontend rejects itself. */
function bodyOf({ INPUT0: rows, body, status }: TrafficStep): InferBody | undefined {
  if (rows !== undefined) return oneInput([rows.length, rows[0]?.length ?? 0], rows.flat());
  if (body === undefined || status === REFUSED_BY_HTTP) return undefined;
  return "inputs" in body ? body : oneInput([body.INPUT0.length], body.INPUT0);
}

function oneInput(shape: readonly number[], data: readonly number[]): InferBody {
  return { inputs: [{ name: "INPUT0", datatype: "FP32", shape, data }] };
}

function toTensor({ datatype, shape, data }: InferBody["inputs"][number]): Tensor {
  return Tensor.fromElements(datatype, shape, Float32Array.from(data));
}
