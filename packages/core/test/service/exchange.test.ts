import { NO_PARAMETERS, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { InferenceRequest, RequestHandle } from "../../src/request/inference-request.js";
import type { InferenceResponse } from "../../src/request/inference-response.js";
import { type Client, ClientGone, Exchange } from "../../src/service/exchange.js";
import type { FoundModel } from "../../src/service/inference-service.js";
import { SharedMemory } from "../../src/shared-memory/shared-memory.js";

const response: InferenceResponse = {
  id: "",
  modelName: "m",
  modelVersion: "1",
  parameters: NO_PARAMETERS,
  outputs: new Map(),
};
const overload = new TritonError("UNAVAILABLE", "the queue is full");

/** A client that leaves when a test says so. */
class TestClient implements Client {
  gone = false;
  reason: TritonError | undefined;
  readonly #listeners = new Set<() => void>();

  onGone(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get watched(): boolean {
    return this.#listeners.size > 0;
  }

  leave(): void {
    this.gone = true;
    for (const listener of this.#listeners) listener();
  }
}

/** A model that answers when a test says so. */
class TestModel {
  respond!: (outcome: InferenceResponse | TritonError | undefined, final: boolean) => void;
  readonly cancelled: unknown[] = [];

  served(given: Partial<FoundModel> = {}): FoundModel {
    return {
      name: "m",
      version: 1,
      config: { name: "m" } as FoundModel["config"],
      labels: new Map(),
      inService: true,
      infer: (request) => this.#accept(request),
      ...given,
    };
  }

  #accept({ sender }: InferenceRequest): RequestHandle {
    const handle: RequestHandle & { settled: boolean } = {
      id: "",
      settled: false,
      cancel: (reason) => {
        this.cancelled.push(reason);
        this.respond(reason ?? new TritonError("CANCELLED", "the request was cancelled"), true);
        return true;
      },
      askToStop: () => false,
      pause() {},
      resume() {},
    };
    this.respond = (outcome, final) => {
      handle.settled = final;
      sender.receive(outcome, final, handle);
    };
    return handle;
  }
}

const request = { inputs: new Map() };
const service = {
  sharedMemory: new SharedMemory(false),
  model: () => expect.unreachable("the version stays in service"),
  assertOpen() {},
};

describe("an exchange with a single response", () => {
  it("resolves to it, and forgets its client", async () => {
    const [model, client] = [new TestModel(), new TestClient()];
    const exchange = new Exchange(service, client, model.served());
    const single = exchange.single(request);
    expect([client.watched, exchange.answered]).toEqual([true, false]);
    model.respond(response, true);
    await expect(single).resolves.toBe(response);
    expect([client.watched, exchange.answered]).toEqual([false, true]);
  });

  it("rejects with the first error, and with INTERNAL for another number of responses", async () => {
    const model = new TestModel();
    const send = () => new Exchange(service, undefined, model.served()).single(request);
    const failed = send();
    model.respond(response, false);
    model.respond(overload, true);
    await expect(failed).rejects.toBe(overload);
    const none = send();
    model.respond(undefined, true);
    await expect(none).rejects.toMatchObject({ message: "expected a single response, got 0" });
    const two = send();
    model.respond(response, false);
    model.respond(response, true);
    await expect(two).rejects.toMatchObject({
      code: "INTERNAL",
      message: "expected a single response, got 2",
    });
  });

  it.each([undefined, overload])(
    "cancels the request of a client that leaves, with its reason %s",
    async (reason) => {
      const [model, client] = [new TestModel(), new TestClient()];
      const single = new Exchange(service, client, model.served()).single(request);
      client.reason = reason;
      client.leave();
      await expect(single).rejects.toMatchObject({ code: reason?.code ?? "CANCELLED" });
      expect(model.cancelled).toEqual([reason]);
    },
  );

  it("is not sent for a client that has left", async () => {
    const client = new TestClient();
    client.leave();
    const single = new Exchange(service, client, new TestModel().served()).single(request);
    await expect(single).rejects.toBeInstanceOf(ClientGone);
  });
});

describe("an exchange that is refused", () => {
  const refusing = new TestModel().served({
    infer: () => {
      throw overload;
    },
  });

  it("waits for the turn of the refusal, unless the request is too large to be kept", async () => {
    let takeTurn = () => {};
    const refusals = {
      turn: () => new Promise<void>((resolve) => (takeTurn = resolve)),
      placeFor: () => expect.unreachable("the queue has room"),
    };
    const refused: unknown[] = [];
    const sink = { respond() {}, refuse: (error: unknown) => void refused.push(error) };
    const turn = new Exchange({ ...service, refusals }, undefined, refusing).send(request, sink);
    expect(refused).toEqual([]);
    takeTurn();
    await turn;
    expect(refused).toEqual([overload]);
    expect(
      new Exchange({ ...service, refusals }, undefined, refusing, "", { mayWait: false }).send(request, sink),
    ).toBe(undefined);
    expect(refused).toEqual([overload, overload]);
  });

  it("leaves the line of a full queue with its client, or when it is cancelled", async () => {
    const client = new TestClient();
    const refusals = {
      turn: () => undefined,
      placeFor: () => {
        let leave = () => {};
        const turn = new Promise<void>((_, reject) => (leave = () => reject(overload)));
        return { turn, leave };
      },
    };
    const requests = { isFull: true, freePlaces: 0, onSettled: undefined, refusal: () => undefined };
    const full = new TestModel().served({ requests });
    const left = new Exchange({ ...service, refusals }, client, full).turn("");
    client.leave();
    await expect(left).rejects.toBeInstanceOf(ClientGone);
    const exchange = new Exchange({ ...service, refusals }, undefined, full);
    const cancelled = exchange.turn("");
    exchange.cancel();
    await expect(cancelled).rejects.toBe(overload);
  });

  it("is refused at once for a decoupled model where only one response is allowed", () => {
    const config = { name: "m", modelTransactionPolicy: { decoupled: true } } as FoundModel["config"];
    const model = new TestModel().served({ config });
    expect(() => new Exchange(service, undefined, model, "", { unaryOnly: "not here" })).toThrow("not here");
  });
});
