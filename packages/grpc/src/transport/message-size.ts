/** Advice for a client whose message is too large. */
const HINT = "Use --grpc-max-receive-message-size to increase the limit.";

/** Text for a message that is larger than `max` bytes as it comes; gRPC's own, with the option. */
export function tooLarge(size: number, max: number): string {
  return `Received message larger than max (${size} vs. ${max}). ${HINT}`;
}

/** Text for a message that becomes larger than `max` bytes. */
export function unpacksTooLarge(max: number): string {
  return `Received message that decompresses to a size larger than ${max}. ${HINT}`;
}
