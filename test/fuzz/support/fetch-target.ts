import type { FuzzTarget } from "../engine/target.js";
import { httpStructure, readHttpMessage } from "../structures/http-message.js";
import type { Structure } from "../structures/structure.js";
import { text } from "../structures/text.js";
import { expectGoodAnswer } from "./answers.js";

/** A handler of the web platform, and the errors that it did not expect. */
export interface FetchTargetOptions extends Pick<FuzzTarget, "seeds" | "tokens" | "check" | "close"> {
  /** @param onError receives errors that clients do not see */
  open(onError: (error: unknown) => void): (request: Request) => Promise<Response>;
  /** Headers that may be added to requests. */
  readonly headers?: readonly string[];
  /** Form of the bodies; text unless given. */
  readonly inner?: Structure;
}

/** A handler of the web platform as a target, without sockets. Inputs are HTTP/1 messages. */
export function fetchTarget({ open, headers = [], inner = text, ...rest }: FetchTargetOptions): FuzzTarget {
  const unexpected: unknown[] = [];
  const handler = open((error) => void unexpected.push(error));
  return {
    structure: httpStructure(inner, headers),
    lanes: 8,
    ...rest,
    async run(input) {
      const request = requestOf(input);
      if (request === undefined) return "not a request";
      const response = await handler(request);
      const body = Buffer.from(await response.arrayBuffer());
      if (unexpected.length > 0) throw unexpected.splice(0)[0];
      const contentType = response.headers.get("content-type") ?? "";
      if (request.method !== "HEAD") expectGoodAnswer({ status: response.status, contentType, body });
      return String(response.status);
    },
  };
}

/** The request that a message stands for; undefined for one that the web platform cannot represent. */
export function requestOf(input: Uint8Array): Request | undefined {
  const message = readHttpMessage(input);
  const [method = "", path = ""] = message.start.split(" ");
  try {
    const headers = new Headers();
    for (const line of message.headers) {
      const at = line.indexOf(":");
      if (at > 0 && !/^(?:content-length|transfer-encoding)$/i.test(line.slice(0, at))) {
        headers.append(line.slice(0, at), line.slice(at + 1).trim());
      }
    }
    const body = /^(?:GET|HEAD)$/i.test(method) ? undefined : Uint8Array.from(message.body);
    return new Request(`http://localhost${path.startsWith("/") ? path : `/${path}`}`, {
      method,
      headers,
      body,
    });
  } catch {
    return undefined;
  }
}
