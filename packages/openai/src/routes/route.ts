import type { AccessGroup } from "@tritonjs/core/types";
import type { V2Response } from "@tritonjs/http/frontend";
import type { OpenAiGroup } from "../access/endpoint-group.js";
import type { Exchange } from "../generation/exchange.js";

/** An endpoint. */
export interface Route {
  /** Matches the whole path. The group `model` is the name of a model, percent-encoded. */
  readonly path: RegExp;
  readonly method: "GET" | "POST";
  readonly group: OpenAiGroup;
  /** Group of the v2 protocol whose operations it uses. */
  readonly access: AccessGroup;
  /** @param model the decoded name in the path; empty on routes without one */
  handle(exchange: Exchange, model: string): V2Response | Promise<V2Response>;
}

/** Answers with JSON. */
export function jsonAnswer(value: unknown): V2Response {
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(value)),
  };
}
