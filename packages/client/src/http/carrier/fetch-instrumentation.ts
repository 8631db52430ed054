/** The part of Node.js that tells who observes `fetch`. Browsers have none, and Node.js only from version 20.16. */
interface NodeProcess {
  getBuiltinModule?(name: "diagnostics_channel"): { hasSubscribers(channel: string): boolean };
}

/**
 * True while an instrumentation of undici observes the `fetch` of Node.js. It appends the headers of its own span, and
 * a request with two `traceparent` has no valid one.
 */
export function fetchIsInstrumented(): boolean {
  const { process } = globalThis as { readonly process?: NodeProcess };
  return process?.getBuiltinModule?.("diagnostics_channel").hasSubscribers("undici:request:create") === true;
}
