import {
  type Client,
  ClientGone,
  type Clock,
  type InferenceRequest,
  type InferenceResponse,
  type RequestHandle,
} from "@tritonjs/core/internal/server";
import { NO_PARAMETERS, TritonError } from "@tritonjs/protocol";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { Exchange } from "../../src/service/exchange.js";
import type { FoundModel } from "../../src/service/inference-service.js";
import { RefusalLine } from "../../src/service/refusal-line.js";
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

/** A line on an event loop with this utilization, and the times at which refusals left it. */
function lineOf(utilization: number) {
  const clock = new VirtualClock();
  const line = new RefusalLine(clock, () => utilization);
  const out: number[] = [];
  const refuse = (count: number) => {
    for (let i = 0; i < count; i++) void line.turn()?.then(() => out.push(clock.now()));
  };
  return { clock, line, out, refuse };
}

describe("the refusal line", () => {
  it("sends the first few refusals at once", () => {
    const { line } = lineOf(0);
    expect(Array.from({ length: 8 }, () => line.turn())).toEqual(Array(8).fill(undefined));
  });

  it("sends as many at once again after a tick", async () => {
    const { clock, line } = lineOf(0);
    for (let i = 0; i < 8; i++) line.turn();
    await clock.advance(4);
    expect(line.turn()).toBeUndefined();
  });

  it("sends eight further refusals each tick", async () => {
    const { clock, out, refuse } = lineOf(0);
    refuse(26);
    await clock.advance(100);
    expect(out).toEqual([...Array(8).fill(4), ...Array(8).fill(8), 12, 12]);
  });

  it("keeps the order of refusals", async () => {
    const { clock, line } = lineOf(0);
    const order: number[] = [];
    for (let i = 0; i < 40; i++) void line.turn()?.then(() => order.push(i));
    await clock.advance(100);
    expect(order).toEqual(Array.from({ length: 32 }, (_, i) => 8 + i));
  });

  it("makes a later refusal wait behind those in the line", async () => {
    const { clock, line, refuse } = lineOf(0);
    refuse(20);
    await clock.advance(4);
    expect(line.turn()).toBeInstanceOf(Promise);
  });

  it("doubles the pause between two lots while the event loop is busy", async () => {
    const { clock, out, refuse } = lineOf(1);
    refuse(64);
    await clock.advance(1000);
    expect([...new Set(out)]).toEqual([4, 12, 28, 60, 124, 188, 252]);
  });

  it("sends larger lots from a long line", async () => {
    const { clock, out, refuse } = lineOf(0);
    refuse(8 + 10_000);
    await clock.advance(1000);
    expect(out.length).toBeGreaterThan(5000);
    await clock.advance(9000);
    expect(out).toHaveLength(10_000);
  });

  it("sends small lots in short ticks from a long line while the event loop is busy", async () => {
    const { clock, out, refuse } = lineOf(1);
    refuse(8 + 4000);
    await clock.advance(1000);
    const lots = new Map<number, number>();
    for (const at of out) lots.set(at, (lots.get(at) ?? 0) + 1);
    expect(Math.max(...lots.values())).toBeLessThanOrEqual(16);
    expect(out.length).toBeGreaterThan(500);
    expect(out.length).toBeLessThan(1500);
    await clock.advance(30_000);
    expect(out).toHaveLength(4000);
  });

  it("lets all out at once when it dissolves", async () => {
    const { clock, line, out, refuse } = lineOf(1);
    refuse(8 + 100);
    line.dissolve();
    await clock.advance(0);
    expect(out).toEqual(Array(100).fill(0));
  });
});

/** A queue whose room the test decides, and what became of the requests that wait for it. */
function queueOf(line: RefusalLine, name = "") {
  const queue = { freePlaces: 0, onSettled: undefined as (() => void) | undefined };
  const accepted: string[] = [];
  const refused: string[] = [];
  const left: string[] = [];
  const wait = (id: number) => {
    const place = line.placeFor(queue);
    void place.turn.then(
      () => {
        if (queue.freePlaces === 0) refused.push(`${name}${id}`);
        else {
          queue.freePlaces--;
          accepted.push(`${name}${id}`);
        }
      },
      (error) => left.push(`${name}${id} ${error.code}`),
    );
    return place;
  };
  return { queue, wait, accepted, refused, left };
}

describe("a request in the refusal line", () => {
  /** A line that sends nothing at once any more. */
  const spentLine = () => {
    const { clock, line } = lineOf(0);
    for (let i = 0; i < 8; i++) line.turn();
    return { clock, line };
  };

  it("is accepted when its queue has room, the newest first", async () => {
    const { clock, line } = spentLine();
    const { queue, wait, accepted, refused } = queueOf(line);
    for (let id = 0; id < 20; id++) wait(id);
    queue.freePlaces = 3;
    queue.onSettled!();
    await clock.advance(0);
    expect(accepted).toEqual(["19", "18", "17"]);
    await clock.advance(100);
    expect(refused).toEqual(Array.from({ length: 17 }, (_, id) => `${id}`));
  });

  it("gets room that a batch leaves in the turn of a refusal before that refusal goes out", async () => {
    const timers: (() => void)[] = [];
    const deferred: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      wallNow: () => 0,
      setTimer: (_delayMs, run) => {
        timers.push(run);
        return { cancel: () => {} };
      },
      defer: (run) => void deferred.push(run),
    };
    const line = new RefusalLine(clock, () => 0);
    for (let i = 0; i < 8; i++) line.turn();
    const { queue, wait, accepted, refused } = queueOf(line);
    for (let id = 0; id < 2; id++) wait(id);
    queue.freePlaces = 1;
    queue.onSettled!();
    // One turn of the event loop: timers, then what was deferred.
    for (const run of timers) run();
    for (const run of deferred) {
      run();
      await Promise.resolve();
    }
    expect({ accepted, refused }).toEqual({ accepted: ["1"], refused: ["0"] });
  });

  it("keeps its place while other models have room", async () => {
    const { clock, line } = spentLine();
    const [full, free] = [queueOf(line, "full"), queueOf(line, "free")];
    full.wait(0);
    free.wait(0);
    free.queue.freePlaces = 1;
    free.queue.onSettled!();
    await clock.advance(0);
    expect([full.accepted, free.accepted]).toEqual([[], ["free0"]]);
  });

  it("takes turns with the requests of other models", async () => {
    const { clock, line } = spentLine();
    const [many, few] = [queueOf(line, "many"), queueOf(line, "few")];
    for (let id = 0; id < 100; id++) many.wait(id);
    for (let id = 0; id < 2; id++) few.wait(id);
    await clock.advance(4);
    expect([many.refused.length, few.refused.length]).toEqual([6, 2]);
  });

  it("gives its turn to the next one when it leaves", async () => {
    const { clock, line } = spentLine();
    const { queue, wait, refused, left } = queueOf(line);
    const places = Array.from({ length: 20 }, (_, id) => wait(id));
    for (let id = 0; id < 10; id++) places[id]!.leave();
    places[19]!.leave();
    await clock.advance(4);
    expect(left).toHaveLength(11);
    expect(left[0]).toBe("0 CANCELLED");
    expect(refused).toEqual(Array.from({ length: 8 }, (_, i) => `${10 + i}`));
    places[10]!.leave();
    await clock.advance(100);
    expect(refused).toHaveLength(9);
    expect(left).toHaveLength(11);
    expect(queue.onSettled).toBeUndefined();
  });

  it("starts a single pace after a line was empty for a moment", async () => {
    const { clock, line } = spentLine();
    const { wait, refused } = queueOf(line);
    wait(0).leave();
    for (let id = 1; id < 100; id++) wait(id);
    await clock.advance(8);
    expect(refused).toHaveLength(16);
  });
});
