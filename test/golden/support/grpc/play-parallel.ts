import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@grpc/grpc-js";
import { metadataOf, type UnaryCall, type UnaryResult, unary } from "./client.js";
import { compareCall } from "./compare-call.js";
import type { GrpcCase } from "./grpc-case.js";
import { findRpc } from "./protocol.js";

/** Plays several unary calls that overlap in time, and compares their results and the order in which they end. */
export async function playParallel(client: Client, recorded: GrpcCase): Promise<string[]> {
  const rpc = findRpc(recorded.rpc);
  const calls = new Map<string, UnaryCall>();
  const results = new Map<string, Promise<UnaryResult>>();
  const ended: string[] = [];
  const expectedEnds: string[] = [];
  const differences: string[] = [];
  for (const event of recorded.events ?? []) {
    const name = event.call ?? "";
    if (event.sleep_ms !== undefined) await sleep(event.sleep_ms);
    if (event.send !== undefined) {
      const call = unary(client, rpc, event.send, metadataOf(recorded), event.deadline_ms);
      calls.set(name, call);
      results.set(
        name,
        call.result.then((result) => {
          ended.push(name);
          return result;
        }),
      );
    }
    if (event.cancel) calls.get(name)?.cancel();
    if (event.status !== undefined) {
      expectedEnds.push(name);
      const result = await results.get(name);
      if (result === undefined) throw new Error(`call ${name} was never made`);
      const expected = { response: event.recv ?? null, status: event.status };
      differences.push(...compareCall(expected, result).map((difference) => `call ${name}: ${difference}`));
    }
  }
  if (ended.join() !== expectedEnds.join()) differences.push(`ends: expected ${expectedEnds}, got ${ended}`);
  return differences;
}
