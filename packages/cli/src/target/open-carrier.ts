import type { Compression } from "@tritonjs/client/http";
import type { EndListener, ExpectedOutputs, LoadCarrier, ResponseHandling } from "./carrier.js";
import { GrpcAnswers, GrpcLoadCarrier, SessionPool, StreamLoadCarrier } from "./grpc-carrier.js";
import { compressedMessage, PROTOBUF_STAMPS } from "./grpc-templates.js";
import { headerBlocks } from "./hpack.js";
import { HttpLoadCarrier } from "./http-carrier.js";
import { InferAnswers, JSON_STAMPS } from "./http-inference.js";
import { type ConversationPlan, Conversations, OpenAiAnswers } from "./openai-target.js";
import type { Endpoint } from "./target-options.js";
import { StampedRequests, type WireTemplates } from "./wire-template.js";

export function openCarrier(plan: RemoteCarrierPlan, seed: number, onEnd: EndListener): LoadCarrier {
  const { endpoint, templates, handling } = plan;
  if (plan.kind === "grpc") {
    const pack = plan.compression && compressedMessage(plan.compression);
    const format = pack === undefined ? PROTOBUF_STAMPS : { ...PROTOBUF_STAMPS, pack };
    const requests = new StampedRequests(templates, format, seed);
    const sessions = new SessionPool(endpoint, headerBlocks(plan.headers));
    const answers = new GrpcAnswers(plan.expected, handling);
    return plan.streaming
      ? new StreamLoadCarrier(sessions, requests, answers, onEnd, plan.decoupled)
      : new GrpcLoadCarrier(sessions, requests, answers, onEnd);
  }
  if (plan.kind === "http") {
    const requests = new StampedRequests(templates, JSON_STAMPS, seed);
    return new HttpLoadCarrier(endpoint, requests, () => new InferAnswers(plan.expected, handling), onEnd);
  }
  const conversations = plan.conversations && new Conversations(plan.conversations);
  const requests = conversations ?? new StampedRequests(templates, JSON_STAMPS, seed);
  return new HttpLoadCarrier(endpoint, requests, () => new OpenAiAnswers(handling, conversations), onEnd);
}

/** A target over a network, for every thread. It survives structured cloning. */
interface RemotePlan {
  readonly endpoint: Endpoint;
  readonly templates: WireTemplates;
  readonly handling: ResponseHandling;
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
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export type RemoteCarrierPlan = HttpPlan | OpenAiPlan | GrpcPlan;
