/** The response cache of the recorded server's flags: `--cache-config=local,size=N`. */
export function cacheOf(flags: readonly string[]): { byteSize: number } | undefined {
  const size = flags.map((flag) => /^--cache-config=local,size=(\d+)$/.exec(flag)?.[1]).find(Boolean);
  return size === undefined ? undefined : { byteSize: Number(size) };
}
