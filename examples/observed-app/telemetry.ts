import { type Context, context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { FastifyInstance, FastifyRequest } from "fastify";

/*
 * The OpenTelemetry of the application. Usually `@opentelemetry/sdk-node` sets it up, sends the spans to a collector, and
 * makes the spans of HTTP requests. Here they stay in memory, and a hook makes them.
 */

const exporter = new InMemorySpanExporter();

export function startTelemetry(): void {
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  );
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
}

/** Makes a span of each request of the application, which is the active one in its route. */
export function traceRoutes(app: FastifyInstance): void {
  const contexts = new WeakMap<FastifyRequest, Context>();
  app.addHook("onRequest", (request, _reply, next) => {
    const parent = propagation.extract(context.active(), request.headers);
    const name = `${request.method} ${request.routeOptions.url}`;
    const span = trace.getTracer("app").startSpan(name, { kind: SpanKind.SERVER }, parent);
    const own = trace.setSpan(parent, span);
    contexts.set(request, own);
    context.with(own, next);
  });
  app.addHook("onResponse", async (request) => {
    trace.getSpan(contexts.get(request) ?? context.active())?.end();
  });
}

/** The trace of the code that runs now, for lines of the log. */
export function activeTrace(): { trace_id?: string } {
  const traceId = trace.getActiveSpan()?.spanContext().traceId;
  return traceId === undefined ? {} : { trace_id: traceId };
}

interface SpanTree {
  readonly name: string;
  readonly children: readonly SpanTree[];
}

/** The finished spans of requests with the spans below them, oldest first. */
export function spanTrees(parentId?: string): SpanTree[] {
  const spans = exporter.getFinishedSpans().filter((span) => span.parentSpanContext?.spanId === parentId);
  return spans.map((span) => ({ name: span.name, children: spanTrees(span.spanContext().spanId) }));
}
