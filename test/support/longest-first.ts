import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Long tests that take over half a minute on two cores, the longest first. */
const LONGEST = [
  "test/runtimes/runtimes.long.test.ts",
  "test/package/tutorial.long.test.ts",
  "test/site/site.long.test.ts",
  "test/chaos/chaos-run.long.test.ts",
  "test/deploy/proxies.long.test.ts",
  "packages/perf/test/optimize/optimize.long.test.ts",
  "test/fuzz/random-inputs.long.test.ts",
  "test/package/package-managers.long.test.ts",
  "test/docs/guides.long.test.ts",
  "test/examples/model-examples.long.test.ts",
  "test/examples/speech-recognition.long.test.ts",
  "test/examples/tutorials.long.test.ts",
  "test/package/small-install.long.test.ts",
  "test/package/installed-packages.long.test.ts",
  "test/package/published-packages.long.test.ts",
  "test/simulation/texts.long.test.ts",
  "test/golden/python-grpc.long.test.ts",
  "test/golden/python-http.long.test.ts",
];

/** Starts the longest files first, so that no worker has one of them left when the others are done. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((path) => moduleId.endsWith(path));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
