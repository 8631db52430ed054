import { parseArgs } from "node:util";
import { createClient, TritonError } from "@tritonjs/client/http";
import type { Models } from "./models.js";

/*
 * A command that names the kind of a flower. `npm run types` writes the types of the models, so it has no tensor of its
 * own: a name, a shape or a class that the models do not have is an error of the compiler.
 *
 *   node dist/flower.js --url http://localhost:8000 5.1 3.5 1.4 0.2
 */

/** A text for each class that the model can name, and for no other. */
const HABITATS = {
  setosa: "bogs and wet meadows in the north",
  versicolor: "shores and marshes in the east of North America",
  virginica: "coastal plains in the south-east of the United States",
} satisfies Record<Models["flowers"]["outputs"][0]["labels"][number], string>;

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "http://localhost:8000" } },
  allowPositionals: true,
});

await using client = createClient<Models>(values.url, { initTimeoutMs: 10_000 });
try {
  const measures = Float32Array.from(positionals, Number);
  const [best] = await client.model("flowers").classify("scores", { measures });
  if (best?.label !== undefined) console.log(`${best.label}: ${HABITATS[best.label]}`);
} catch (error) {
  console.error(`flower: ${TritonError.from(error).message}`);
  process.exitCode = 1;
}
