import { setTimeout as sleep } from "node:timers/promises";
import type { Client, Metadata } from "@grpc/grpc-js";
import { ANY } from "../compare-values.js";
import { isRestricted, refusalFault, withToken } from "./access.js";
import { metadataOf, type UnaryResult, unary } from "./client.js";
import { compareCall } from "./compare-call.js";
import type { GrpcCase, JsonMessage } from "./grpc-case.js";
import { playParallel } from "./play-parallel.js";
import { playStream } from "./play-stream.js";
import { findRpc } from "./protocol.js";
import type { GrpcObjects } from "./shared-memory-objects.js";

/** Server and expectations for playing a case. */
export interface GrpcReplay {
  readonly client: Client;
  readonly objects: GrpcObjects;
  /** Flags of the recorded server. */
  readonly flags: readonly string[];
  /** The case as the library is expected to handle it. */
  intended(got: UnaryResult | undefined): GrpcCase;
}

/** Replays one recorded case and lists how the server's side differs. */
export async function compareGrpcCase(recorded: GrpcCase, replay: GrpcReplay): Promise<string[]> {
  const { client, objects, intended } = replay;
  if (recorded.form === "parallel") return playParallel(client, intended(undefined));
  if (recorded.events !== undefined) return playStream(client, intended(undefined));
  await sleep(waitOf(recorded));
  const call = (metadata: Metadata) => callOnce(client, recorded, metadata);
  const metadata = metadataOf(recorded);
  const restricted = isRestricted(recorded.rpc, replay.flags);
  const faults = restricted ? refusalFault(recorded.rpc, await call(metadata)) : [];
  const got = objects.asRecorded(await call(restricted ? withToken(metadata) : metadata));
  const expected = intended(got);
  const compared = { ...got, response: asRecorded(expected, got.response) };
  return [...faults, ...compareCall(withoutVersion(expected), compared)];
}

function callOnce(client: Client, recorded: GrpcCase, metadata: Metadata): Promise<UnaryResult> {
  const { rpc, request, request_wire: wire, deadline_ms: deadline } = recorded;
  const message = wire === undefined ? (request ?? {}) : Buffer.from(wire, "base64");
  return unary(client, findRpc(rpc), message, metadata, deadline).result;
}

/** Some calls were made a while after the previous one; their notes say so. */
function waitOf({ note = "" }: GrpcCase): number {
  return Number(/Asked (\d+) ms after/.exec(note)?.[1] ?? 0);
}

/** The version of the server differs from the recorded one. */
function withoutVersion(expected: GrpcCase): GrpcCase {
  if (!Array.isArray(expected.response?.extensions)) return expected;
  return { ...expected, response: { ...expected.response, version: ANY } };
}

/** Keeps the recorded parts of an answer: the rows of the index and of the statistics that the recording lists. */
function asRecorded({ rpc, response: expected }: GrpcCase, got: JsonMessage | null): JsonMessage | null {
  if (got === null || !expected) return got;
  if (rpc === "RepositoryIndex") {
    const rows = listed(expected.models, got.models);
    return { models: rows.sort((a, b) => (a.name + a.version < b.name + b.version ? -1 : 1)) };
  }
  const stats = expected.model_stats as JsonMessage[] | undefined;
  if (stats?.every((entry) => entry.inference_stats === undefined)) {
    const rows = listed(stats, got.model_stats);
    return { model_stats: rows.map(({ name, version }) => ({ name, version })) };
  }
  return got;
}

interface Row {
  readonly name: string;
  readonly version: string;
}

/** Rows with names that the recording lists: effects of other cases on other models may be missing here. */
function listed(expected: unknown, got: unknown): Row[] {
  const names = new Set((expected as Row[]).map(({ name }) => name));
  return (got as Row[]).filter(({ name }) => names.has(name));
}
