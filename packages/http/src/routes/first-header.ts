import type { FastifyRequest } from "fastify";

/** The value of a header; of one that was sent several times the first. */
export function firstHeader(request: FastifyRequest, name: string): string | undefined {
  const { rawHeaders } = request.raw;
  const wanted = name.toLowerCase();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === wanted) return rawHeaders[i + 1];
  }
  return undefined;
}
