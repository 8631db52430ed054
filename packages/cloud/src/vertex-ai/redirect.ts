/** Decision about a path of the redirect header: the method of its route, or the status of its refusal. */
export type Redirect = { readonly method: "GET" | "POST" } | { readonly refusal: 400 | 403 };

const MODEL = `/v2/models/[^/]+(/versions/[0-9]+)?`;

/** Routes that a redirect may name, and routes that it must not name, as in Triton. */
const RULES: readonly (readonly [RegExp, Redirect])[] = [
  [/^\/metrics$/, { method: "GET" }],
  [/^\/v2(\/health\/(live|ready)|\/models\/stats)?$/, { method: "GET" }],
  [new RegExp(`^${MODEL}/infer$`), { method: "POST" }],
  [new RegExp(`^${MODEL}(/(ready|config|stats))?$`), { method: "GET" }],
  [/^\/v2\/(system|cuda)sharedmemory(\/region\/[^/]+)?\/status$/, { method: "GET" }],
  [/^\/v2\/(system|cuda)sharedmemory(\/region\/[^/]+)?\/(register|unregister)$/, { refusal: 403 }],
  [/^\/v2\/repository(\/[^/]+)?\/index$/, { method: "POST" }],
  [/^\/v2\/repository(\/[^/]+)?\/models\/[^/]+\/(load|unload)$/, { refusal: 403 }],
];

/**
 * Decides whether a redirect may go to a path. Reading and inference are permitted. Routes that change the server are
 * not, because the platform lets every caller of the endpoint send this header.
 *
 * @param path beginning with `/`
 */
export function redirectTo(path: string): Redirect {
  return RULES.find(([pattern]) => pattern.test(path))?.[1] ?? { refusal: 400 };
}
