import { sample, Triton } from "@tritonjs/core";
import { openTelemetry } from "@tritonjs/operations/opentelemetry";
import fastify, { type FastifyBaseLogger, LogController } from "fastify";
import { pino } from "pino";
import { Counter, Registry } from "prom-client";
import { activeTrace, spanTrees, startTelemetry, traceRoutes } from "./telemetry.js";

/*
 * An application with its own log, metrics and traces, in which a model appears:
 *
 *   PORT=3000 npm start
 *   curl localhost:3000/square-root/16
 *   curl localhost:3000/metrics
 *   curl localhost:3000/spans
 */

startTelemetry();
const logger = pino({ level: "debug", base: null, timestamp: false, mixin: activeTrace });
const registry = new Registry();
const asked = new Counter({
  name: "app_square_roots_total",
  help: "Square roots that clients have asked for.",
  registers: [registry],
});

const triton = new Triton({ logger, logVerbose: 1, metrics: { registry }, extensions: [openTelemetry()] });
const squareRoot = triton.bind({
  modelName: "square_root",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: sample(({ x }) => {
    const value = x.get(0);
    if (value < 0) throw new RangeError(`expected a number from 0 on, got ${value}`);
    return { y: [Math.sqrt(value)] };
  }),
});

const appLogger: FastifyBaseLogger = logger;
const logController = new LogController({ disableRequestLogging: true });
const app = fastify({ loggerInstance: appLogger, logController });
traceRoutes(app);

app.get<{ Params: { value: string } }>("/square-root/:value", async ({ id, params, log }) => {
  asked.inc();
  log.info("asks the model");
  const { y } = await squareRoot.inferSample({ x: [Number(params.value)] }, { id });
  return { result: y.get(0) };
});
app.get("/metrics", async (_request, reply) => {
  reply.type(registry.contentType);
  return registry.metrics();
});
app.get("/spans", async () => spanTrees());

await app.listen({
  host: "127.0.0.1",
  port: Number(process.env.PORT ?? 3000),
  listenTextResolver: (address) => `listening at ${address}`,
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await app.close();
    await triton.close();
  });
}
