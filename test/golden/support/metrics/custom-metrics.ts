import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Behaviour } from "../behaviours/behaviour.js";
import { elements } from "../behaviours/tensors.js";

/** The model with metrics of its own: it counts its requests and keeps the last value and the distribution of all. */
export function customMetrics(registry: Registry): Behaviour {
  const registers = [registry];
  const requests = new Counter({
    name: "my_requests_total",
    help: "Requests seen",
    labelNames: ["model", "part"],
    registers,
  });
  const level = new Gauge({ name: "my_level", help: "A level", labelNames: ["model"], registers });
  const sizes = new Histogram({
    name: "my_sizes",
    help: "Sizes",
    labelNames: ["model"],
    buckets: [1, 5],
    registers,
  });
  requests.inc({ model: "cus", part: "a" }, 0);
  level.set({ model: "cus" }, 0);
  sizes.zero({ model: "cus" });
  return ({ inputs: { INPUT0 } }) => {
    const [value = 0] = elements(INPUT0) as Float32Array;
    requests.inc({ model: "cus", part: "a" });
    level.set({ model: "cus" }, value);
    sizes.observe({ model: "cus" }, value);
    return { OUTPUT0: INPUT0 as NonNullable<typeof INPUT0> };
  };
}
