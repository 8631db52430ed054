/** The callbacks of one signal, behind the only listener that the library adds to it. */
interface Followers {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `call` once when the signal aborts, unless the returned function has removed it before. Many requests may share
 * a signal. Separate listeners would make adding each one as expensive as the number of those before it.
 */
export function followSignal(signal: AbortSignal, call: () => void): () => void {
  let followers = followersOf.get(signal);
  if (followers === undefined) {
    const calls = new Set<() => void>();
    const listener = () => {
      for (const one of calls) one();
    };
    followers = { calls, listener };
    followersOf.set(signal, followers);
    signal.addEventListener("abort", listener, { once: true });
  }
  const { calls, listener } = followers;
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size > 0 || followersOf.get(signal)?.calls !== calls) return;
    followersOf.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}
