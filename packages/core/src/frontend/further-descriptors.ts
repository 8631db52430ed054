import { requireKoffi } from "../koffi.js";

/**
 * Descriptors of a port. In a turn of the event loop, libuv accepts one connection for each of them. With a single one,
 * 64 clients that connect together wait for 64 turns, which are long when large tensors are read.
 */
const MOST = 8;

/**
 * Makes further descriptors of the socket on which a server listens.
 *
 * @returns none on systems other than Linux or without the package koffi, and fewer when no descriptor is free
 */
export function furtherDescriptors(server: object): number[] {
  // Node.js has no public way to the descriptor of a server.
  const { fd } = (server as { _handle?: { fd?: number } })._handle ?? {};
  if (process.platform !== "linux" || fd === undefined || fd < 0) return [];
  const found: number[] = [];
  try {
    const duplicate = requireKoffi().load(null).func("int dup(int fd)");
    while (found.length < MOST - 1) {
      const further = duplicate(fd);
      if (further < 0) break;
      found.push(further);
    }
  } catch {
    // koffi is not installed.
  }
  return found;
}
