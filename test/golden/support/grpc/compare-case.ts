import type { Client } from "@grpc/grpc-js";
import { ANY } from "../compare-values.js";
import type { Models } from "../served-models.js";
import { isServed } from "../served-models.js";
import { metadataOf, type UnaryResult, unary } from "./client.js";
import { compareCall } from "./compare-call.js";
import type { GrpcCase, JsonMessage } from "./grpc-case.js";
import { playParallel } from "./play-parallel.js";
import { playStream } from "./play-stream.js";
import { findRpc } from "./protocol.js";
import type { GrpcObjects } from "./shared-memory-objects.js";

/** Replays one recorded case and tells how the server's side differs. */
export async function compareGrpcCase(
  client: Client,
  recorded: GrpcCase,
  models: Models,
  objects: GrpcObjects,
): Promise<string[]> {
  if (recorded.form === "parallel") return playParallel(client, recorded);
  if (recorded.events !== undefined) return playStream(client, recorded);
  const message =
    recorded.request_wire === undefined
      ? (recorded.request ?? {})
      : Buffer.from(recorded.request_wire, "base64");
  const { result } = unary(
    client,
    findRpc(recorded.rpc),
    message,
    metadataOf(recorded),
    recorded.deadline_ms,
  );
  const got = objects.asRecorded(await result);
  if (recorded.flags?.includes("bug")) return checkSane(got);
  if (recorded.flags?.includes("version") && isNewerRefusal(recorded, got)) return [];
  return compareCall(likeRecorded(recorded, models, got.response), {
    ...got,
    response: asRecorded(recorded, got.response),
  });
}

/** The recorded server is wrong here: anything will do that a sound server may answer. */
function checkSane({ status }: UnaryResult): string[] {
  const sound = ["OK", "INVALID_ARGUMENT", "UNIMPLEMENTED"].includes(status.code);
  return sound ? [] : [`status: expected a refusal, got ${status.code} "${status.details}"`];
}

/** True when an answer is the refusal that the newer sources have, as the note of the case says. */
function isNewerRefusal({ note = "" }: GrpcCase, { status }: UnaryResult): boolean {
  const text = /sources refuse: (.+)$/.exec(note)?.[1];
  const masked = status.details.replace(/'[^']*'/, "'X'");
  return status.code === "INVALID_ARGUMENT" && text === masked;
}

/** Leaves out of a recording what belongs to models that are not served, and what callbacks cannot give. */
function likeRecorded(recorded: GrpcCase, models: Models, got: JsonMessage | null): GrpcCase {
  const isPlayed = got?.parameters === undefined;
  if (recorded.request?.model_name === "params" && isPlayed) return withoutParameters(recorded);
  if (Array.isArray(recorded.response?.extensions)) {
    return { ...recorded, response: { ...recorded.response, version: ANY } };
  }
  const listed = recorded.response?.models;
  if (!Array.isArray(listed)) return recorded;
  const kept = (listed as { name: string }[]).filter(({ name }) => {
    const model = models.get(name);
    return model === undefined || isServed(model);
  });
  return { ...recorded, response: { models: kept } };
}

/** The recorded model gives its request parameters back; here its output tells them, callbacks have none to give. */
function withoutParameters(recorded: GrpcCase): GrpcCase {
  if (!recorded.response) return recorded;
  const { parameters: _, ...response } = recorded.response;
  return { ...recorded, response };
}

/** Keeps of an answer what the recording kept of it: the index of three models, names and versions of statistics. */
function asRecorded({ rpc, response: expected }: GrpcCase, got: JsonMessage | null): JsonMessage | null {
  if (got === null || !expected) return got;
  if (rpc === "RepositoryIndex") {
    const names = new Set((expected.models as { name: string }[]).map(({ name }) => name));
    const rows = (got.models as { name: string; version: string }[]).filter(({ name }) => names.has(name));
    return { models: rows.sort((a, b) => (a.name + a.version < b.name + b.version ? -1 : 1)) };
  }
  const stats = expected.model_stats as JsonMessage[] | undefined;
  if (stats?.every((entry) => entry.inference_stats === undefined)) {
    const rows = got.model_stats as { name: string; version: string }[];
    return { model_stats: rows.map(({ name, version }) => ({ name, version })) };
  }
  return got;
}
