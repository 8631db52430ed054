import { request as httpRequest } from "node:http";
import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const ACTIONS = ["infer", "generate", "generate_stream"];

/** A service whose queue is full for the first request, which waits until it leaves or `accept` is called. */
async function startFull() {
  const service = new IdentityService(identityConfig("m", "BYTES", [1]));
  let accept = (): void => {};
  let onWait = (): void => {};
  let onLeave = (): void => {};
  const waits = new Promise<void>((resolve) => (onWait = resolve));
  const left = new Promise<void>((resolve) => (onLeave = resolve));
  let isFirst = true;
  service.queueOfModels = {
    get isFull() {
      return isFirst;
    },
    freePlaces: 0,
    onSettled: undefined,
    refusal: () => undefined,
  };
  const placeFor = () => {
    isFirst = false;
    onWait();
    let reject: (error: Error) => void;
    const turn = new Promise<void>((...both) => ([accept, reject] = both));
    const leave = () => {
      reject(new TritonError("CANCELLED", "the request was cancelled"));
      onLeave();
    };
    return { turn, leave };
  };
  service.refusals = { placeFor, turn: () => undefined };
  return { service, port: await startHttp(service), waits, left, accept: () => accept() };
}

describe.each(ACTIONS)("a request to %s that waits at a full queue", (action) => {
  const path = `/v2/models/m/${action}`;
  const body =
    action === "infer"
      ? '{"inputs":[{"name":"IN","datatype":"BYTES","shape":[1],"data":["x"]}]}'
      : '{"IN":"x"}';

  it("leaves the line when its client leaves, and never runs", async () => {
    const { service, port, waits, left } = await startFull();
    const client = httpRequest({ host: "localhost", port, method: "POST", path });
    client.on("error", () => {});
    client.end(body);
    await waits;
    client.destroy();
    await left;
    expect((await send(port, { path, body })).status).toBe(200);
    expect(service.requests).toHaveLength(1);
  });

  it("runs when there is room", async () => {
    const { service, port, waits, accept } = await startFull();
    const answer = send(port, { path, body });
    await waits;
    expect(service.requests).toEqual([]);
    accept();
    expect((await answer).status).toBe(200);
  });
});
