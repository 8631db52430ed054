import type { LoadRequest } from "../load-request.js";

/** Reads the body of one kind of response into its request. One reader serves one connection. */
export interface HttpAnswers {
  /** A response begins. Returns whether its body is wanted. */
  begin(request: LoadRequest, status: number, head: string, now: number): boolean;
  body(request: LoadRequest, bytes: Buffer): void;
  end(request: LoadRequest): void;
}
