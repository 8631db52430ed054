import type { Compression } from "@tritonjs/client/http";
import type { EndListener, ExpectedOutputs, LoadCarrier, ResponseHandling } from "./carrier.js";
import { GrpcLoadCarrier, SessionPool, StreamLoadCarrier } from "./grpc-carrier.js";
import { compressedMessage, PROTOBUF_STAMPS } from "./grpc-templates.js";
import { headerBlocks } from "./hpack.js";
import { HttpLoadCarrier } from "./http-carrier.js";
import { InferAnswers, JSON_STAMPS } from "./http-inference.js";
import { type ConversationPlan, Conversations, OpenAiAnswers } from "./openai-target.js";
import type { Endpoint } from "./target-options.js";
import { StampedRequests, type WireTemplates } from "./wire-template.js";

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

/** What every thread needs of a target over a network. It survives structured cloning. */
interface RemotePlan {
  readonly endpoint: Endpoint;
  readonly templates: WireTemplates;
  readonly handling: ResponseHandling;
  /** Most connections of a thread. */
  readonly maxConnections: number;
}

interface HttpPlan extends RemotePlan {
  readonly kind: "http";
  readonly expected?: ExpectedOutputs;
}

interface OpenAiPlan extends RemotePlan {
  readonly kind: "openai";
  /** Builds the requests of sessions, in place of the templates. */
  readonly conversations?: ConversationPlan;
}

interface GrpcPlan extends RemotePlan {
  readonly kind: "grpc";
  readonly expected?: ExpectedOutputs;
  readonly streaming: boolean;
  readonly decoupled: boolean;
  /** Compression of each message when it is sent; absent where the prepared messages are compressed. */
  readonly compression?: Compression;
  /** Headers of every call. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export type RemoteCarrierPlan = HttpPlan | OpenAiPlan | GrpcPlan;
