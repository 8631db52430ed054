import { type HttpCase, requestBody, type Step } from "../../support/http/http-case.js";
import type { HttpResponse } from "../../support/http/parse-response.js";
import type { Difference, Draft } from "../difference.js";

/** A rule about HTTP exchanges; the outcome is the list of answers in the order of the steps. */
export type HttpDifference = Difference<HttpCase, readonly (HttpResponse | undefined)[]>;

export type StepDraft = Draft<Step>;

/** The exchanges of a case, for changing. */
export function steps(recorded: Draft<HttpCase> | HttpCase): StepDraft[] {
  return (recorded.steps ?? [recorded]) as StepDraft[];
}

/** A rule about single exchanges. */
export function perStep(
  rule: string,
  applies: (step: StepDraft) => boolean,
  amend: (step: StepDraft, got: HttpResponse | undefined) => void,
  onlyCallbacks?: true,
): HttpDifference {
  return {
    rule,
    ...(onlyCallbacks && { onlyCallbacks }),
    applies: (recorded) => steps(recorded).some(applies),
    amend(draft, got) {
      for (const [i, step] of steps(draft).entries()) if (applies(step)) amend(step, got[i]);
    },
  };
}

/** Makes an answer an error. */
export function answerError(
  { response }: StepDraft,
  status: number,
  error: string,
  type: "application/json" | "text/plain" = "application/json",
): void {
  answer(response, status, { error }, type);
}

/** Makes an answer a JSON body. */
export function answer(
  response: StepDraft["response"],
  status: number,
  body: unknown,
  type: "application/json" | "text/plain" = "application/json",
): void {
  for (const field of ["body_b64", "body_json_masked"] as const) delete response[field];
  response.status = status;
  response.headers = { "Content-Type": type };
  response.body_text = JSON.stringify(body);
}

/** The error text of a recorded answer. */
export function recordedError({ response: { body_text: text = "" } }: StepDraft): string | undefined {
  return /^\{"error":/.test(text) ? (tryJson(text) as { error: string } | undefined)?.error : undefined;
}

/** The error text of a received answer. */
export function errorFor(got: HttpResponse | undefined): string {
  const text = got?.body.toString() ?? "";
  const body = tryJson(text.replace(/^data: /, "").trim()) as { error?: string } | undefined;
  return body?.error ?? "";
}

/** Text of a request's body. */
export function sentText({ request }: StepDraft): string {
  return requestBody(request as Step["request"])?.toString() ?? "";
}

/** Value of a request's header. */
export function sentHeader({ request }: StepDraft, name: string): string | undefined {
  const found = Object.entries(request.headers).find(([key]) => key.toLowerCase() === name);
  return found === undefined ? undefined : String(found[1]);
}

/** The name of the model that a path addresses. */
export function modelOf({ request }: StepDraft): string {
  return /^\/v2\/models\/([^/]+)/.exec(request.path)?.[1] ?? "";
}

/** The parsed JSON text; `undefined` when `JSON.parse` rejects it. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
