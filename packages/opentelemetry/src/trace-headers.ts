import { type Context, context, propagation, ROOT_CONTEXT } from "@opentelemetry/api";

/**
 * Headers that carry the active context to another server, for the option `headers` of a client's call.
 *
 * @example
 * ```ts
 * await client.infer("resnet", { inputs, headers: traceHeaders() });
 * ```
 */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/**
 * The context of a request in a worker, where the span of the request is remote. Spans that the callback makes there
 * become its children. It needs a propagator that is registered in the worker.
 *
 * @param request request as the callback gets it
 * @example
 * ```ts
 * export default sample((inputs, { requests }) =>
 *   context.with(requestContext(requests[0]), () => compute(inputs)));
 * ```
 */
export function requestContext(request: { readonly traceparent?: string | undefined } | undefined): Context {
  const { traceparent } = request ?? {};
  return traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}
