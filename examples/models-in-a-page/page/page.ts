import { webWorker } from "@tritonjs/backends/web-worker";
import { ModelClient } from "@tritonjs/client/http";
import { hybrid } from "@tritonjs/client/hybrid";
import { WebTriton } from "@tritonjs/core/web";

/* The script of the page: the model runs in a web worker of the page, or on the server, wherever answers come sooner. */

const inputs = [{ name: "measurements", dtype: "FP32", shape: [4] }] as const;
const outputs = [
  { name: "species", dtype: "INT64", shape: [1] },
  { name: "probabilities", dtype: "FP32", shape: [3] },
] as const;

const SPECIES = ["setosa", "versicolor", "virginica"];

const triton = new WebTriton();

async function openHere() {
  const inferFunc = await webWorker(() => new Worker("/iris-worker.js", { type: "module" }));
  const iris = triton.bind({ modelName: "iris", inputs, outputs, inferFunc });
  await iris.ready();
  document.body.dataset.ready = "here";
  return iris;
}

const model = hybrid({
  // Until the model is loaded, calls go to the server.
  local: openHere(),
  // A server that cannot be reached is left at once.
  remote: new ModelClient<typeof inputs, typeof outputs>(location.origin, "iris", { retries: 0 }),
});

const form = document.querySelector("form")!;
const status = document.querySelector("[role=status]")!;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = String(new FormData(form).get("measurements"));
  const measurements = text.trim().split(/\s+/).map(Number);
  const { next } = model.status();
  try {
    const { species, probabilities } = await model.inferSample({ measurements });
    const name = Number(species.data[0]);
    const place = next === "local" ? "in this page" : "on the server";
    status.textContent = `${SPECIES[name]}, ${Math.round(100 * probabilities.data[name]!)}%, ${place}`;
  } catch (error) {
    status.textContent = (error as Error).message;
  }
});
