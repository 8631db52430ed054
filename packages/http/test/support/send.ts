import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";

/** An answer, read in full. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
}

/** A request to send; a body given in chunks is sent as chunks. */
export interface Outgoing {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array | readonly Uint8Array[];
  readonly agent?: Agent;
}

/** Sends a request to a server on this machine and reads the answer. */
export function send(port: number, outgoing: Outgoing): Promise<Answer> {
  const { method = "POST", path, headers = {}, body, agent } = outgoing;
  return new Promise((resolve, reject) => {
    const outgoingRequest = request({ host: "localhost", port, method, path, headers, agent }, (incoming) => {
      const parts: Buffer[] = [];
      incoming.on("data", (part: Buffer) => parts.push(part));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const whole = Buffer.concat(parts);
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: whole,
          text: whole.toString(),
        });
      });
    });
    outgoingRequest.on("error", reject);
    if (Array.isArray(body)) for (const chunk of body) outgoingRequest.write(chunk);
    outgoingRequest.end(Array.isArray(body) ? undefined : body);
  });
}

/** An agent that keeps one connection. */
export function oneConnection(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}
