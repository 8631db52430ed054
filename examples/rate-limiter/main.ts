import { type InstanceGroupOptions, sample, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";

/*
 * Models that share scarce resources: a licence for one model at a time, and two units of memory.
 *
 *   npm start
 *
 * The example runs under a virtual clock, so it ends at once and prints the same each time.
 */

const clock = new VirtualClock();
await using triton = new Triton({
  clock,
  rateLimit: "execution_count",
  // All resources. Without this list, each resource has as many units as the instance with the largest need takes.
  rateLimitResources: [
    { name: "licence", count: 1, device: "global" },
    { name: "memory", count: 2 },
  ],
});

/** Names of the models that ran, by start time. */
const ran = new Map<number, string[]>();

/** A model that takes 10 ms for a request. */
async function bind(modelName: string, instanceGroup: InstanceGroupOptions) {
  const model = triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: sample(async ({ x }) => {
      ran.set(clock.now(), [...(ran.get(clock.now()) ?? []), modelName]);
      await new Promise<void>((done) => clock.setTimer(10, done));
      return { y: x };
    }),
    config: { instanceGroup },
  });
  await model.ready();
  return model;
}

/** Sends requests to each model, all at once, and prints which model ran when. */
async function show(
  title: string,
  count: number,
  ...models: Awaited<ReturnType<typeof bind>>[]
): Promise<void> {
  ran.clear();
  const start = clock.now();
  const requests = Array.from({ length: count }, (_, i) =>
    models.map((model) => model.inferSample({ x: [i] })),
  );
  await clock.advance(1000);
  await Promise.all(requests.flat());
  console.log(title);
  for (const [at, names] of ran) console.log(`  ${at - start} ms: ${names.sort().join(", ")}`);
}

const licence = { name: "licence", count: 1, global: true };
const chat = await bind("chat", { rateLimiter: { priority: 1, resources: [licence] } });
const report = await bind("report", { rateLimiter: { priority: 2, resources: [licence] } });
await show("one licence, and chat has twice the turns of report", 6, chat, report);

const memory = (pieces: number) => ({ rateLimiter: { resources: [{ name: "memory", count: pieces }] } });
const small = await bind("small", { ...memory(1), count: 2 });
const large = await bind("large", memory(2));
// All models share one line: a small request that comes after a large one does not overtake it.
await show("two pieces of memory: two small ones at a time, or a large one", 4, small, large);

await show("no more than there is, and nobody waits for what others have", 2, chat, small);

const refused = await bind("huge", memory(3)).catch((error: unknown) => TritonError.from(error));
if (refused instanceof TritonError) console.log(`huge does not load: ${refused.message}`);
