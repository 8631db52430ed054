import { describe } from "vitest";
import { hasPython, withoutPython } from "../support/python.js";
import { loadDifferences } from "./differences/load-differences.js";
import { loadLines } from "./support/load-cases.js";
import { compareLoad } from "./support/loads/compare-load.js";
import { isPython, type LoadCase, type PlayedLoad } from "./support/loads/load-case.js";
import { playLoad } from "./support/loads/play-load.js";
import { replay } from "./support/replay.js";

/** All loads of a file; loads of models with Python code need Python. */
function replayLoads(file: string): void {
  const cases = loadLines<LoadCase>(`config/${file}.jsonl`).map((recorded) => ({
    ...recorded,
    id: `${file}/${recorded.id}`,
  }));
  const replayed = (some: readonly LoadCase[]) =>
    replay<LoadCase, PlayedLoad>({
      cases: some,
      differences: loadDifferences,
      run: async (recorded, intended) => {
        const got = await playLoad(recorded);
        return compareLoad(intended(got), got);
      },
    });
  replayed(cases.filter((recorded) => !isPython(recorded)));
  describe.skipIf(!hasPython)(`of Python models${withoutPython}`, () => replayed(cases.filter(isPython)));
}

describe("recorded loads of configurations", () => replayLoads("prototxt"));
describe("recorded loads with completion", () => replayLoads("autocomplete"));
