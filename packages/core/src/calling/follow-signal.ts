/** Those who want to know when a signal aborts, behind the one listener that the signal knows. */
interface Followers {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `call` once when the signal aborts, until the function that is returned says that nobody wants to know any
 * more. Many requests may share a signal: its own listeners would each cost as much as there are others.
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
