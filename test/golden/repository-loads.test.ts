import { describe } from "vitest";
import { loadLines } from "./support/load-cases.js";
import { isPython, type LoadCase } from "./support/loads/load-case.js";
import { playLoad } from "./support/loads/play-load.js";
import { replay } from "./support/replay.js";

function replayLoads(file: string): void {
  replay<LoadCase>({
    cases: loadLines<LoadCase>(`config/${file}.jsonl`)
      .filter((recorded) => recorded.load !== undefined && !isPython(recorded))
      .map((recorded) => ({ ...recorded, id: `${file}/${recorded.id}` })),
    subject: ({ id }) => ({ area: id, features: new Set(), operations: [], flags: [] }),
    run: playLoad,
  });
}

describe("recorded loads of configurations", () => replayLoads("prototxt"));
describe("recorded loads of ONNX models", () => replayLoads("autocomplete"));
