import type { Compression } from "@tritonjs/client/http";
import { type EndListener, type ExpectedOutputs, type LoadCarrier, OutputReader } from "./carrier.js";
import { StreamLoadCarrier, UnaryLoadCarrier } from "./grpc-carrier.js";
import { compressedMessage, PROTOBUF_STAMPS } from "./grpc-templates.js";
import { HttpLoadCarrier } from "./http-carrier.js";
import { InferAnswers, JSON_STAMPS } from "./http-inference.js";
import { type ConversationPlan, Conversations, OpenAiAnswers } from "./openai-target.js";
import type { Endpoint } from "./target-options.js";
import { StampedRequests, type WireTemplates } from "./wire-template.js";

/** Opens the carrier of a thread. */
export function openCarrier(plan: RemoteCarrierPlan, seed: number, onEnd: EndListener): LoadCarrier {
  const { endpoint, templates, expected, keepsOutputs } = plan;
  const outputs = new OutputReader(expected, keepsOutputs);
  if (plan.kind === "grpc") {
    const pack = plan.compression && compressedMessage(plan.compression);
    const requests = new StampedRequests(templates, { ...PROTOBUF_STAMPS, pack }, seed);
    if (!plan.streaming) return new UnaryLoadCarrier(endpoint, plan.headers, requests, outputs, onEnd);
    return new StreamLoadCarrier(endpoint, plan.headers, requests, outputs, onEnd, plan.decoupled);
  }
  const conversations = plan.kind === "openai" && plan.conversations && new Conversations(plan.conversations);
  const requests = conversations || new StampedRequests(templates, JSON_STAMPS, seed);
  const openAnswers = () =>
    plan.kind === "http"
      ? new InferAnswers(outputs)
      : new OpenAiAnswers(keepsOutputs, conversations || undefined);
  return new HttpLoadCarrier(endpoint, requests, openAnswers, onEnd);
}

/** A target over a network, for every thread. It survives structured cloning. */
interface RemotePlan {
  readonly endpoint: Endpoint;
  readonly templates: WireTemplates;
  readonly expected?: ExpectedOutputs;
  /** Records the outputs of each response as JSON text. */
  readonly keepsOutputs: boolean;
}

interface HttpPlan extends RemotePlan {
  readonly kind: "http";
}

interface OpenAiPlan extends RemotePlan {
  readonly kind: "openai";
  /** Builds the requests of sessions, in place of the templates. */
  readonly conversations?: ConversationPlan;
}

interface GrpcPlan extends RemotePlan {
  readonly kind: "grpc";
  readonly streaming: boolean;
  readonly decoupled: boolean;
  /** Compression of each message when it is sent; absent where the prepared messages are compressed. */
  readonly compression?: Compression;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export type RemoteCarrierPlan = HttpPlan | OpenAiPlan | GrpcPlan;
