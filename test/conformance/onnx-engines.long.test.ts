import { expect, it } from "vitest";
import { conformanceModels, hasConformanceData } from "./onnx-data/conformance-models.js";
import { answersOf, passableSets } from "./onnx-data/engine-answers.js";

const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

it.skipIf(!hasConformanceData)(
  `both engines answer ONNX's conformance data alike, bit for bit${skipped}`,
  async () => {
    const different: unknown[] = [];
    let compared = 0;
    for (const model of conformanceModels()) {
      const sets = await passableSets(model);
      if (sets === undefined) continue;
      const [worker, native] = await Promise.all(
        (["worker", "native"] as const).map((engine) => answersOf(model, engine, sets)),
      );
      if (JSON.stringify(worker) === JSON.stringify(native)) compared += Array.isArray(worker) ? 1 : 0;
      else different.push({ model: model.name, worker, native });
    }
    expect(different).toEqual([]);
    expect(compared).toBeGreaterThan(900);
  },
  1_200_000,
);
