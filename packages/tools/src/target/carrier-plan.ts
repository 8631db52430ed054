import type { Compression } from "@tritonjs/client/http";
import type { ResponseHandling } from "./carrier.js";
import type { Endpoint } from "./endpoint.js";
import type { ExpectedOutputs } from "./expected-outputs.js";
import type { ConversationPlan } from "./openai/conversations.js";
import type { WireTemplates } from "./wire/wire-template.js";

/** What every thread needs of a target over a network. It survives structured cloning. */
interface RemotePlan {
  readonly endpoint: Endpoint;
  readonly templates: WireTemplates;
  readonly handling: ResponseHandling;
  /** Most connections of a thread. */
  readonly maxConnections: number;
}

export interface HttpPlan extends RemotePlan {
  readonly kind: "http";
  readonly expected?: ExpectedOutputs;
}

export interface OpenAiPlan extends RemotePlan {
  readonly kind: "openai";
  /** Builds the requests of sessions, in place of the templates. */
  readonly conversations?: ConversationPlan;
}

export interface GrpcPlan extends RemotePlan {
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
