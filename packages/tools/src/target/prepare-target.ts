import type { DataSet } from "../data/data-set.js";
import type { TestedModel } from "../data/tested-model.js";
import type { ResponseHandling } from "./carrier.js";
import type { RemoteCarrierPlan } from "./carrier-plan.js";
import { authorityOf, endpointOf } from "./endpoint.js";
import { httpInferTemplates } from "./http/http-templates.js";
import { readModel } from "./read-model.js";
import type { TargetOptions } from "./target-options.js";

/** A target with everything that is prepared once. */
export interface PreparedTarget {
  readonly plan: RemoteCarrierPlan;
  readonly model?: TestedModel;
  /** Frees what was prepared, such as shared memory. */
  release(): Promise<void>;
}

/** How many connections the threads together may open. */
const MOST_CONNECTIONS = 4096;

/**
 * Prepares the requests of a data set for a target.
 *
 * @throws TritonError INVALID_ARG for options that do not fit together, and errors of the server that is asked for the
 * model.
 */
export async function prepareTarget(
  target: TargetOptions,
  data: DataSet,
  handling: ResponseHandling,
): Promise<PreparedTarget> {
  if (target.kind !== "http" || data.kind !== "tensors") throw new Error("not yet");
  const model = await readModel(target);
  const endpoint = endpointOf(target.url, { defaultPort: 8000, schemes: ["http", "https"], tls: target.tls });
  const templates = httpInferTemplates(data, {
    model,
    basePath: endpoint.basePath,
    host: authorityOf(endpoint),
    headers: target.headers ?? {},
    parameters: target.parameters ?? {},
    inputFormat: target.inputTensorFormat ?? "binary",
    outputFormat: target.outputTensorFormat ?? "binary",
    requestCompression: target.requestCompression,
    responseCompression: target.responseCompression,
  });
  const expected = data.payloads.map((payload) => payload.expected);
  return {
    plan: {
      kind: "http",
      endpoint,
      templates,
      handling,
      maxConnections: MOST_CONNECTIONS,
      expected: expected.some((outputs) => outputs !== undefined) ? expected : undefined,
    },
    model,
    release: async () => {},
  };
}
