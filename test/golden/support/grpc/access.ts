import type { Metadata } from "@grpc/grpc-js";
import type { UnaryResult } from "./client.js";

/** Secret of the replayed servers. */
export const ACCESS_TOKEN = "golden-secret";

const HEADER = "triton-grpc-protocol-triton-access-token";

/** Procedures that need the token by default. */
const RESTRICTED =
  /^(SystemSharedMemory|CudaSharedMemory|Repository|ModelStatistics|TraceSetting|LogSettings)/;

/** True for a call that the server rejects without the token: servers with their own restrictions have no others. */
export function isRestricted(rpc: string, flags: readonly string[]): boolean {
  return RESTRICTED.test(rpc) && !flags.some((flag) => flag.startsWith("--grpc-restricted-protocol="));
}

export function withToken(metadata: Metadata): Metadata {
  const all = metadata.clone();
  all.set(HEADER, ACCESS_TOKEN);
  return all;
}

/** Lists how the end of a call without the token differs from the expected rejection. */
export function refusalFault(rpc: string, { response, status }: UnaryResult): string[] {
  const text = `This protocol is restricted, expecting header '${HEADER}'`;
  const same = response === null && status.code === "UNAVAILABLE" && status.details === text;
  return same ? [] : [`${rpc} without the token: got ${status.code} "${status.details}"`];
}
