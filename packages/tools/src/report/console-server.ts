import { overheadMs, type ServerFigures, stageMs, usesCache } from "../measure/server/server-figures.js";
import { microseconds } from "./number-texts.js";

/** The server's lines of a level. The models of an ensemble follow in blocks of their own. */
export function consoleServer(server: ServerFigures, indent: string): string[] {
  const { stages, composing } = server;
  const us = (ms: number) => `${microseconds(ms)} usec`;
  const stage = (name: Parameters<typeof stageMs>[1]) => us(stageMs(server, name));
  const lines = [`Inference count: ${server.inferenceCount}`, `Execution count: ${server.executionCount}`];
  const hasCache = usesCache(server);
  if (hasCache) {
    lines.push(`Cache hit count: ${stages.cacheHit.count}`, `Cache miss count: ${stages.cacheMiss.count}`);
  }
  lines.push(`Successful request count: ${stages.success.count}`);
  if (stages.fail.count > 0) lines.push(`Failed request count: ${stages.fail.count}`);
  const total = `Avg request latency: ${stage("success")}`;
  const overhead = `overhead ${us(overheadMs(server))} + queue ${stage("queue")}`;
  const compute =
    stageMs(server, "computeInput") + stageMs(server, "computeInfer") + stageMs(server, "computeOutput");
  if (composing.length > 0) {
    lines.push(`${total} (${overhead} + compute ${us(compute)})`, "", "Composing models:");
    for (const model of composing) {
      lines.push(`${model.name}, version: ${model.version}`, ...consoleServer(model, "    "));
    }
  } else if (hasCache) {
    const cacheMs = stageMs(server, "cacheHit") + stageMs(server, "cacheMiss");
    lines.push(
      `${total} (${overhead} + cache hit/miss ${us(cacheMs)} + compute ${us(compute)})`,
      ...cacheLines(server),
    );
  } else {
    lines.push(
      `${total} (${overhead} + compute input ${stage("computeInput")} + compute infer ${stage("computeInfer")} ` +
        `+ compute output ${stage("computeOutput")})`,
    );
  }
  lines.push(...batchLines(server));
  return lines.map((line) => (line === "" ? "" : indent + line));
}

/** Mean times of single hits and misses. */
function cacheLines({ stages }: ServerFigures): string[] {
  const mean = ({ count, ns }: { readonly count: number; readonly ns: number }) =>
    count === 0 ? 0 : microseconds(ns / count / 1e6);
  const { cacheHit, cacheMiss, computeInput, computeInfer, computeOutput } = stages;
  const compute = mean({
    count: computeInfer.count,
    ns: computeInput.ns + computeInfer.ns + computeOutput.ns,
  });
  const miss = mean(cacheMiss);
  return [
    `  Average Cache Hit Latency: ${mean(cacheHit)} usec`,
    `  Average Cache Miss Latency: ${miss + compute} usec (cache lookup/insertion ${miss} usec + compute ${compute} usec)`,
  ];
}

/** Batch sizes, and why batches were cut, where the server tells. */
function batchLines({ batches, cuts }: ServerFigures): string[] {
  const lines: string[] = [];
  if (batches.length > 0) {
    const executions = batches.reduce((sum, { count }) => sum + count, 0);
    const rows = batches.reduce((sum, { batchSize, count }) => sum + batchSize * count, 0);
    const sizes = batches.map(({ batchSize, count }) => `${batchSize} (${count}x)`).join(", ");
    lines.push(`Batch sizes: ${sizes}; avg ${Number((rows / executions).toPrecision(3))}`);
  }
  if (cuts !== undefined) {
    const reasons = Object.entries(cuts).sort(([, a], [, b]) => b - a);
    lines.push(`Batches cut by: ${reasons.map(([reason, count]) => `${reason} (${count}x)`).join(", ")}`);
  }
  return lines;
}
