/** A request as it was sent. */
export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body_text?: string;
  readonly body_b64?: string;
  readonly chunks_b64?: readonly string[];
  readonly no_content_length?: boolean;
  readonly http_version?: string;
  readonly port?: "metrics";
}

/** A received answer, its body de-chunked and decompressed. */
export interface RecordedResponse {
  /** `null`: the connection ended without an answer. */
  readonly status: number | null;
  /** Only headers that matter. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body_text?: string;
  readonly body_b64?: string;
  readonly body_json_masked?: unknown;
}

/** One exchange of a case. */
export interface Step {
  readonly request: RecordedRequest;
  readonly response: RecordedResponse;
  readonly wait_ms_before?: number;
  readonly start_ms?: number;
}

/** One line of `http/cases.jsonl`. */
export interface HttpCase extends Partial<Step> {
  readonly id: string;
  readonly area: string;
  readonly note: string;
  readonly server_flags?: readonly string[];
  readonly repository?: "explicit";
  readonly steps?: readonly Step[];
  /** Part of the answer is in the order of a hash map. */
  readonly unordered?: string;
  /** A bug or an artefact of the recorded server. */
  readonly quirk?: string;
  /** The answer according to the newer sources. */
  readonly newer?: string;
}

/** The exchanges of a case. */
export function stepsOf(recorded: HttpCase): readonly Step[] {
  return recorded.steps ?? [recorded as Step];
}

/** The bytes of a request's body, `undefined` when it has none. */
export function requestBody(request: RecordedRequest): Buffer | undefined {
  if (request.body_b64 !== undefined) return Buffer.from(request.body_b64, "base64");
  return request.body_text === undefined ? undefined : Buffer.from(request.body_text, "utf8");
}

/** The recorded bytes of an answer's body, `undefined` when they were not kept. */
export function responseBody(response: RecordedResponse): Buffer | undefined {
  if (response.body_b64 !== undefined) return Buffer.from(response.body_b64, "base64");
  return response.body_text === undefined ? undefined : Buffer.from(response.body_text, "utf8");
}
