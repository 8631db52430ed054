import { status } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import type { GrpcClient } from "../support/grpc-client.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";
import { answer, manualService, ok, reader } from "../support/stream-reader.js";

const FULL = "Exceeds maximum queue size";

/** A request that waits at the full queue. */
interface Waiter {
  readonly id: string;
  accept(): void;
  refuse(): void;
}

/** A request to the model, for which the queue is full if its id begins with `w`. */
function asking(id: string) {
  return { modelName: "m", id, modelVersion: id.startsWith("w") ? id : "" };
}

/** The queue of one request that finds it full. */
class FullQueue {
  readonly isFull = true;
  readonly freePlaces = 0;
  readonly onSettled = undefined;
  isRefused = false;

  constructor(readonly id: string) {}

  refusal(): TritonError | undefined {
    return this.isRefused ? new TritonError("UNAVAILABLE", FULL) : undefined;
  }
}

/** Makes the queue of the service full for requests with a version, which is their id. */
function fillQueue(service: FakeService) {
  const waiters: Waiter[] = [];
  const left: string[] = [];
  let wake = (): void => {};
  const lookUp = service.model.bind(service);
  service.model = (name, version) =>
    version === "" ? lookUp(name, version) : { ...lookUp(name, ""), requests: new FullQueue(version) };
  const placeFor = (queue: object) => {
    const full = queue as FullQueue;
    const { id } = full;
    const { promise, resolve, reject } = withResolvers();
    const refuse = () => {
      full.isRefused = true;
      resolve();
    };
    waiters.push({ id, accept: resolve, refuse });
    wake();
    const leave = () => {
      left.push(id);
      reject(new TritonError("CANCELLED", "the request was cancelled"));
      wake();
    };
    return { turn: promise, leave };
  };
  service.refusals = { placeFor, turn: () => undefined };
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) await new Promise<void>((resolve) => (wake = resolve));
  };
  return {
    waiters,
    left,
    async waiting(count: number): Promise<Waiter> {
      await until(() => waiters.length >= count);
      return waiters[count - 1]!;
    },
    gone: (count: number) => until(() => left.length >= count),
  };
}

function withResolvers() {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
}

/** Exchanges other messages with the server, so that it has read what the client sent before. */
async function serverHasRead(client: GrpcClient): Promise<void> {
  for (let call = 0; call < 10; call++) await client.infer({ modelName: "nosuch" }).catch(() => {});
}

overEachTransport("a stream with a request at a full queue", () => {
  test("reads its next request after the refusal is sent", async () => {
    const { service } = manualService();
    const { client } = await serve(service);
    const { waiters, waiting } = fillQueue(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["w1", "w2", "w3"]) stream.write(asking(id));
    stream.end();
    for (let count = 1; count <= 3; count++) {
      const waiter = await waiting(count);
      await serverHasRead(client);
      expect(waiters).toHaveLength(count);
      waiter.refuse();
      expect(await next()).toMatchObject({ errorMessage: FULL, inferResponse: { id: `w${count}` } });
    }
    expect(await ended).toEqual(ok);
    expect(service.requests).toEqual([]);
  });

  test("passes the request to the model when there is room, and reads on", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const { waiting } = fillQueue(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["w1", "b"]) stream.write(asking(id));
    stream.end();
    (await waiting(1)).accept();
    for (const request of await arrived(2)) answer(request);
    expect((await next()).inferResponse!.id).toBe("w1");
    expect((await next()).inferResponse!.id).toBe("b");
    expect(await ended).toEqual(ok);
    expect(service.requests.map(({ id }) => id)).toEqual(["w1", "b"]);
  });

  test("keeps the order of answers and refusals", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const { waiting } = fillQueue(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["a", "w1", "c"]) stream.write(asking(id));
    stream.end();
    (await waiting(1)).refuse();
    const [a, c] = await arrived(2);
    answer(c!);
    answer(a!);
    expect((await next()).inferResponse!.id).toBe("a");
    expect(await next()).toMatchObject({ errorMessage: FULL, inferResponse: { id: "w1" } });
    expect((await next()).inferResponse!.id).toBe("c");
    expect(await ended).toEqual(ok);
  });

  test("sends the responses of a decoupled model meanwhile", async () => {
    const { service, arrived } = manualService(true);
    const { client } = await serve(service);
    const { waiting } = fillQueue(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["a", "w1"]) stream.write(asking(id));
    stream.end();
    const waiter = await waiting(1);
    const [a] = await arrived(1);
    answer(a!, false);
    answer(a!);
    for (let count = 0; count < 2; count++) expect((await next()).inferResponse!.id).toBe("a");
    waiter.refuse();
    expect(await next()).toMatchObject({ errorMessage: FULL, inferResponse: { id: "w1" } });
    expect(await ended).toEqual(ok);
  });

  test("continues after the refusal in triton_grpc_error mode", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const { waiting } = fillQueue(service);
    const stream = client.stream([["triton_grpc_error", "true"]]);
    const { next, ended } = reader(stream);
    for (const id of ["w1", "b"]) stream.write(asking(id));
    stream.end();
    (await waiting(1)).refuse();
    answer((await arrived(1))[0]!);
    expect((await next()).errorMessage).toBe(FULL);
    expect((await next()).inferResponse!.id).toBe("b");
    expect(await ended).toEqual(ok);
  });

  test("gives the wait up when the client cancels", async () => {
    const { service } = manualService();
    const { client } = await serve(service);
    const { waiters, waiting, gone, left } = fillQueue(service);
    const stream = client.stream();
    const { ended } = reader(stream);
    for (const id of ["w1", "w2"]) stream.write(asking(id));
    await waiting(1);
    stream.cancel();
    expect(await ended).toMatchObject({ code: status.CANCELLED });
    await gone(1);
    await serverHasRead(client);
    expect(left).toEqual(["w1"]);
    expect(waiters).toHaveLength(1);
    expect(service.requests).toEqual([]);
  });

  test("gives the wait up when an answer to an earlier request ends it", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const { waiting, gone } = fillQueue(service);
    const stream = client.stream([["triton_grpc_error", "true"]]);
    const { ended } = reader(stream);
    for (const id of ["a", "w1"]) stream.write(asking(id));
    await waiting(1);
    (await arrived(1))[0]!.respondError(new TritonError("NOT_FOUND", "gone"));
    expect(await ended).toEqual({ code: status.NOT_FOUND, details: "gone" });
    await gone(1);
    expect(service.requests).toHaveLength(1);
  });

  test("does not keep a large request until its refusal", async () => {
    const service = new FakeService({}, () => {
      throw new TritonError("UNAVAILABLE", FULL);
    });
    const { client } = await serve(service);
    const { waiters } = fillQueue(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ ...asking("w1"), rawInputContents: [new Uint8Array(64 * 1024 + 1)] });
    stream.end();
    await next();
    expect(await ended).toEqual(ok);
    expect(waiters).toEqual([]);
  });
});

overEachTransport("a stream with a request that an overloaded model refuses", () => {
  test("reads its next request after the refusal's turn", async () => {
    let given = 0;
    const service = new FakeService({}, () => {
      given++;
      throw new TritonError("UNAVAILABLE", FULL);
    });
    const turns: (() => void)[] = [];
    const turn = () => new Promise<void>((resolve) => turns.push(resolve));
    service.refusals = { turn, placeFor: () => expect.unreachable() };
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["a", "b"]) stream.write(asking(id));
    stream.end();
    for (let count = 1; count <= 2; count++) {
      while (turns.length < count) await serverHasRead(client);
      await serverHasRead(client);
      expect(given).toBe(count);
      turns[count - 1]!();
      expect((await next()).errorMessage).toBe(FULL);
    }
    expect(await ended).toEqual(ok);
  });
});

overEachTransport("a unary request at a full queue", () => {
  test("leaves the line when its client cancels, and never runs", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const { waiting, gone } = fillQueue(service);
    let cancel = (): void => {};
    const call = client.infer(asking("w1"), { started: (started) => (cancel = () => started.cancel()) });
    const rejected = expect(call).rejects.toMatchObject({ code: status.CANCELLED });
    await waiting(1);
    cancel();
    await rejected;
    await gone(1);
    await serverHasRead(client);
    expect(service.requests).toEqual([]);
  });

  test("leaves the line when its deadline passes", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const { waiters, gone } = fillQueue(service);
    // On a busy machine the deadline may pass before the server has the request.
    while (waiters.length === 0) {
      const call = client.infer(asking("w1"), { options: { deadline: Date.now() + 100 } });
      await expect(call).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
    }
    await gone(1);
    expect(service.requests).toEqual([]);
  });
});
