const cleanups = new Set<() => void>();

function runAll(): void {
  for (const cleanup of cleanups) {
    try {
      cleanup();
    } catch {
      // The process ends, and the other cleanups have to run too.
    }
  }
  cleanups.clear();
}

/**
 * Registers a cleanup for a process that ends early, for instance at the second Ctrl-C. The system would keep shared
 * memory and temporary folders otherwise.
 *
 * @param cleanup synchronous, because the process waits for nothing more
 * @returns a function that removes the cleanup, for use after the ordinary one
 */
export function cleanUpAtExit(cleanup: () => void): () => void {
  if (cleanups.size === 0) process.on("exit", runAll);
  cleanups.add(cleanup);
  return () => {
    if (cleanups.delete(cleanup) && cleanups.size === 0) process.off("exit", runAll);
  };
}
