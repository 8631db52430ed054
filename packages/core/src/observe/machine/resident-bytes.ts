let last = 0;

/**
 * Resident memory of this process in bytes. When no descriptor is free to read it, the value of the last call, which is 0
 * before the first one.
 */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss();
  } catch {
    // EMFILE or ENFILE: Node.js reads it from a file.
  }
  return last;
}
