import type { FastifyRequest } from "fastify";

/** The value of a header; of one that was sent several times the first. `name` is in lower case. */
export function firstHeader(request: FastifyRequest, name: string): string | undefined {
  const { rawHeaders } = request.raw;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
