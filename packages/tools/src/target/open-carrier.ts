import type { EndListener, LoadCarrier } from "./carrier.js";
import type { GrpcPlan, RemoteCarrierPlan } from "./carrier-plan.js";
import { GrpcLoadCarrier } from "./grpc/grpc-load-carrier.js";
import { compressedMessage, PROTOBUF_STAMPS } from "./grpc/grpc-templates.js";
import { SessionPool } from "./grpc/session-pool.js";
import { StreamLoadCarrier } from "./grpc/stream-load-carrier.js";
import { HttpLoadCarrier } from "./http/http-load-carrier.js";
import { JSON_STAMPS } from "./http/http-templates.js";
import { InferAnswers } from "./http/infer-answers.js";
import { headerBlocks } from "./http2/hpack.js";
import { Conversations } from "./openai/conversations.js";
import { OpenAiAnswers } from "./openai/openai-answers.js";
import { StampedRequests } from "./wire/stamped-requests.js";

/** Opens the carrier of a thread. */
export function openCarrier(plan: RemoteCarrierPlan, seed: number, onEnd: EndListener): LoadCarrier {
  if (plan.kind === "grpc") return grpcCarrier(plan, seed, onEnd);
  const { endpoint, templates, handling, maxConnections } = plan;
  const common = { endpoint, maxConnections };
  if (plan.kind === "openai" && plan.conversations !== undefined) {
    const conversations = new Conversations(plan.conversations);
    const answers = () => new OpenAiAnswers(handling, conversations);
    return new HttpLoadCarrier({ ...common, requests: conversations, answers }, onEnd);
  }
  const requests = new StampedRequests(templates, JSON_STAMPS, seed);
  const answers =
    plan.kind === "openai"
      ? () => new OpenAiAnswers(handling)
      : () => new InferAnswers(plan.expected, handling);
  return new HttpLoadCarrier({ ...common, requests, answers }, onEnd);
}

function grpcCarrier(plan: GrpcPlan, seed: number, onEnd: EndListener): LoadCarrier {
  const {
    endpoint,
    templates,
    handling,
    expected,
    maxConnections,
    headers,
    streaming,
    decoupled,
    compression,
  } = plan;
  const parts = {
    sessions: new SessionPool(endpoint, headerBlocks(headers), maxConnections),
    requests: new StampedRequests(
      templates,
      compression === undefined
        ? PROTOBUF_STAMPS
        : { ...PROTOBUF_STAMPS, pack: compressedMessage(compression) },
      seed,
    ),
    expected,
    handling,
  };
  return streaming ? new StreamLoadCarrier(parts, decoupled, onEnd) : new GrpcLoadCarrier(parts, onEnd);
}
