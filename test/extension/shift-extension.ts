import { batch, type Triton } from "@tritonjs/core";
import { BaseTrace, type TracedBatch } from "@tritonjs/core/diagnostics";
import {
  type Batcher,
  DynamicBatchScheduler,
  type Extension,
  type InferenceRequest,
  type Residence,
  type TenantModel,
} from "@tritonjs/core/extension";

/** Serves the newest request first. */
const newestFirst: Batcher = {
  name: "newestFirst",
  open: (model) =>
    new DynamicBatchScheduler(model, (queue) => ({
      plan(rules) {
        const waiting: InferenceRequest[] = [];
        for (let one = queue.head; one !== undefined; one = queue.after(one)) waiting.unshift(one);
        if (waiting.length === 0) return undefined;
        return { view: { head: waiting[0], after: (one) => waiting[waiting.indexOf(one) + 1] }, rules };
      },
    })),
};

/** A version that is in memory from its first request until it is sent to bed. */
class Sleeper implements Residence {
  isResident = false;
  #arrival: Promise<void> | undefined;

  constructor(
    readonly model: TenantModel,
    private readonly note: (event: string) => void,
  ) {}

  async start(now: boolean): Promise<void> {
    if (now) await this.#arrive();
  }

  want(): void {
    this.#arrival ??= this.#arrive();
  }

  async sleep(): Promise<void> {
    await this.#arrival;
    this.isResident = false;
    this.#arrival = undefined;
    await this.model.leave();
    this.note(`${this.#name} sleeps`);
  }

  end(): void {
    this.note(`${this.#name} ends`);
  }

  async #arrive(): Promise<void> {
    await this.model.arrive();
    this.isResident = true;
    this.note(`${this.#name} wakes`);
  }

  get #name(): string {
    return `${this.model.name} ${this.model.version}`;
  }
}

class ShiftTrace extends BaseTrace {
  constructor(private readonly note: (event: string) => void) {
    super();
  }

  override begin(modelName: string, version: number): void {
    this.note(`${modelName} ${version} accepts`);
  }

  override batch({ requestCount }: TracedBatch): void {
    this.note(`a batch of ${requestCount}`);
  }
}

/**
 * An extension that uses all five seams at once, for models with the parameter `shift`. Their newest request runs first,
 * testers get the version that they name, and versions come into memory when they are needed.
 *
 * @param note is told of each event
 */
export function shift(note: (event: string) => void): Extension {
  const sleepers: Sleeper[] = [];
  let batches = 0;
  return {
    name: "shift",
    parameters: { shift: "value" },
    attach: ({ registry, route }) => ({
      // Service.
      start() {
        note("starts");
        route("m", "", {
          version: 1,
          route({ parameters }, found) {
            return (parameters.tester === true ? registry.readyVersion("m", "", 2) : undefined) ?? found;
          },
        });
      },
      drain: () => note("drains"),
      close: () => note("closes"),
      families: () => [
        {
          name: "shift_batched_requests",
          help: "Requests that ran",
          type: "gauge",
          collect: () => [{ labels: {}, value: batches }],
        },
      ],
      routes: [
        {
          path: "models/{model}/shift",
          group: "metadata",
          get: {
            id: "readShift",
            summary: "Which versions are in memory",
            run: ({ names }) =>
              sleepers
                .filter(({ model }) => model.name === names.model)
                .map(({ model: { version }, isResident }) => ({ version, isResident })),
          },
          post: {
            id: "endShift",
            summary: "Sends a model to bed",
            async run({ names }) {
              for (const one of sleepers)
                if (one.model.name === names.model && one.isResident) await one.sleep();
            },
          },
        },
      ],
      page: { data: () => ({ batches }) },
      // Batcher.
      batcher: ({ config }) => (config.parameters.shift === undefined ? undefined : newestFirst),
      // Observe.
      tracer: {
        always: true,
        start: () =>
          new ShiftTrace((event) => {
            if (event.startsWith("a batch")) batches++;
            note(event);
          }),
      },
      // Residence.
      admit(model) {
        if (model.config.parameters.shift === undefined) return undefined;
        const sleeper = new Sleeper(model, note);
        sleepers.push(sleeper);
        return sleeper;
      },
    }),
  };
}

/** Binds two versions of a model with the parameter. @param hold is awaited by the batch of the request 0 */
export function bindShifts(triton: Triton, hold: Promise<void>, run: (x: number) => void): void {
  for (const modelVersion of [1, 2]) {
    triton.bind({
      modelName: "m",
      modelVersion,
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: batch(async ({ x }) => {
        run(x.data[0]!);
        if (x.data[0] === 0) await hold;
        return { y: Int32Array.of(modelVersion) };
      }),
      config: { maxBatchSize: 1, parameters: { shift: "yes" } },
    });
  }
}
