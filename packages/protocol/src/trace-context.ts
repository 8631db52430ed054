/*
 * The context of the program's OpenTelemetry, without a dependency on it. `@opentelemetry/api` registers what a program
 * chooses on `globalThis`, so that all copies of the package share it. Without the package each function here costs a
 * look at a property.
 */

/** The part of OpenTelemetry's registered API that carries contexts. */
interface OpenTelemetryApi {
  readonly context?: {
    active(): unknown;
    with<T>(context: unknown, fn: () => T): T;
  };
  readonly propagation?: {
    inject(context: unknown, carrier: Headers, setter: typeof SETTER): void;
    extract(context: unknown, carrier: Headers, getter: typeof GETTER): unknown;
  };
}

type Headers = Record<string, string>;

/** The symbol of version 1 of the API. */
const API = Symbol.for("opentelemetry.js.api.1");

const SETTER = {
  set(carrier: Headers, name: string, value: string) {
    carrier[name] = value;
  },
};

const GETTER = {
  keys: (carrier: Headers) => Object.keys(carrier),
  get: (carrier: Headers, name: string) => carrier[name],
};

const NO_HEADERS: Readonly<Headers> = Object.freeze({});

const registeredApi = (): OpenTelemetryApi =>
  (globalThis as { readonly [API]?: OpenTelemetryApi })[API] ?? NO_HEADERS;

/**
 * Headers that carry the active context to another server, as the program's propagator writes them: `traceparent`.
 * Empty without a propagator, and outside of any span.
 */
export function activeTraceHeaders(): Readonly<Record<string, string>> {
  const { context, propagation } = registeredApi();
  if (context === undefined || propagation === undefined) return NO_HEADERS;
  const headers: Headers = {};
  propagation.inject(context.active(), headers, SETTER);
  return headers;
}

/**
 * Calls `fn` in the context that a `traceparent` names, so that spans which it starts become children of that span.
 * Calls it as it is without a `traceparent`, and where no OpenTelemetry is registered.
 */
export function withTraceparent<T>(traceparent: string | undefined, fn: () => T): T {
  if (traceparent === undefined) return fn();
  const { context, propagation } = registeredApi();
  if (context === undefined || propagation === undefined) return fn();
  return context.with(propagation.extract(context.active(), { traceparent }, GETTER), fn);
}
