import type { SageMakerInferenceType } from "@tritonjs/cloud";
import { boolean, flag, integer, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { readChoice } from "./read-value.js";

const threads = { noEffect: "Node.js serves all connections from its event loop" };
const inferenceTypes = { infer: true, generate: true, generate_stream: true } as const;
const pingModes = { ready: true, live: true } as const;
const noRange: PortRange | undefined = undefined;

/** Ports that a platform allows, both ends included. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** Options of the frontends for Amazon SageMaker and Vertex AI. */
export const cloudOptions = {
  SageMaker: {
    "allow-sagemaker": boolean("Listen for SageMaker requests, on the address of HTTP.", false),
    "sagemaker-port": integer("Port to listen on for SageMaker.", 8080),
    "sagemaker-safe-port-range": value<PortRange | undefined>(
      "<integer>-<integer>",
      "Ports that the other frontends may have.",
      noRange,
      readPortRange,
    ),
    "sagemaker-thread-count": integer("Number of threads for SageMaker.", 8, threads),
    "sagemaker-default-model": text("Model of /invocations; by default the only one in service.", ""),
    "sagemaker-inference-type": value<SageMakerInferenceType>(
      "string",
      "Operation behind /invocations: infer, generate or generate_stream.",
      "infer",
      readChoice(inferenceTypes, "expected infer, generate or generate_stream"),
      { completes: Object.keys(inferenceTypes) },
    ),
    "sagemaker-ping-mode": value<"live" | "ready">(
      "string",
      'What /ping reports: "live", or "ready" once all models are.',
      "ready",
      readChoice(pingModes, "expected ready or live"),
      { completes: Object.keys(pingModes) },
    ),
    "sagemaker-multi-model": flag(
      "Serve the routes of multi-model endpoints, which load models of /opt/ml/models.",
    ),
  },
  "Vertex AI": {
    "allow-vertex-ai": boolean("Listen for Vertex AI requests, on the address of HTTP.", false),
    "vertex-ai-port": integer("Port to listen on for Vertex AI.", 8080),
    "vertex-ai-thread-count": integer("Number of threads for Vertex AI.", 8, threads),
    "vertex-ai-default-model": text("Model of predictions; by default the only one in service.", ""),
    "vertex-ai-predict-route": text("Path of predictions; by default AIP_PREDICT_ROUTE.", ""),
    "vertex-ai-health-route": text("Path of the health check; by default AIP_HEALTH_ROUTE.", ""),
  },
};

function readPortRange(text: string): PortRange {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const range = { from: Number(from), to: Number(to) };
  if (from !== undefined && range.from <= range.to && range.to <= 65535) return range;
  throw new OptionError(`expected <integer>-<integer> with ports up to 65535, got '${text}'`);
}
