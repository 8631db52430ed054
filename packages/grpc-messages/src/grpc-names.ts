/** The path of a method of the inference service. */
export function inferencePath(name: string): string {
  return `/inference.GRPCInferenceService/${name}`;
}

/** Trailer with the number of milliseconds after which a server permits a retry. Clients that retry obey it. */
export const RETRY_PUSHBACK = "grpc-retry-pushback-ms";
