import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  overflowOf,
  withoutBrowser,
} from "../../../../test/support/browser.js";
import { analysisHtml } from "../../src/analyze/analysis-reports.js";
import { modelSearch } from "../../src/analyze/model-search.js";
import { outcomeOf } from "../../src/analyze/outcome.js";
import { htmlReport } from "../../src/report/html-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";
import { analysisOf, SimulatedMachine } from "../support/simulated-machine.js";

function performance(): string {
  const levels = [1, 2].map((value) =>
    levelOf(concurrency(value), requests(value * 50, value * 10), { server: serverOf(value * 50) }, true),
  );
  const fault = { kind: "all failed", text: "every request failed: gone" } as const;
  return htmlReport([...levels, levelOf(concurrency(4), [], { fault })], RUN, ["be careful"]);
}

async function analysis(): Promise<string> {
  const machine = new SimulatedMachine();
  machine.faultOf = ({ m }) => (m?.maxBatchSize === 4 ? "no memory" : undefined);
  const search = analysisOf(machine);
  const space = { maxBatchSize: [1, 2, 4, 8], queueDelayMicroseconds: [0, 500] };
  await modelSearch(search, "m", space, { verify: 2 });
  const command = "tritonjs analyze -m m";
  return analysisHtml(outcomeOf(search, { search: "model", elapsedMs: 0, toolVersion: "1.2.3", command }));
}

if (!hasBrowser) it.skip(`the HTML reports in a browser${withoutBrowser}`, () => {});

describe.runIf(hasBrowser)("the HTML reports in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  describe.each([
    ["of perf", performance],
    ["of analyze", analysis],
  ])("%s", (_, reportOf) => {
    it.each([
      ["light", 1280],
      ["dark", 1280],
      ["light", 400],
    ] as const)(
      "has no fault of accessibility that axe finds, in %s at %d pixels",
      async (colorScheme, width) => {
        const page = await browser.newPage({ colorScheme, viewport: { width, height: 800 } });
        await page.setContent(await reportOf());
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(await overflowOf(page)).toBeLessThanOrEqual(0);
        await page.close();
      },
    );
  });
});
