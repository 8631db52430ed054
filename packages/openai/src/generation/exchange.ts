import type { InferenceService, RequestShare } from "@tritonjs/core/frontend";
import type { HttpTrace, V2Request } from "@tritonjs/http/frontend";
import type { FieldWarnings } from "../fields/field-warnings.js";
import type { ChatTemplates } from "../templates/chat-templates.js";

/** Settings that all requests share. */
export interface ServerContext {
  readonly service: InferenceService;
  readonly warnings: FieldWarnings;
  readonly templates: ChatTemplates;
  /** Largest body in bytes. */
  readonly maxBodySize: number;
  /** Largest number of choices of a request. */
  readonly maxChoices: number;
  /** `max_tokens` of a request without one; undefined to leave it to OpenAI's rules and the model. */
  readonly defaultMaxTokens: number | undefined;
  /** Seconds since 1970 at which the server started. */
  readonly startedAt: number;
}

/** One request on its way through a route. */
export interface OpenAiExchange extends ServerContext {
  readonly request: V2Request;
  /** Id of the request, which the answer, the log and traces have. */
  readonly requestId: string;
  /** Counts the body of the request until it is answered. */
  readonly memory: RequestShare;
  /** The traces of its requests to models. */
  readonly traces: HttpTrace[];
  /** When the request began to arrive, on the clock of traces; undefined on a server without traces. */
  readonly startMs: number | undefined;
}
