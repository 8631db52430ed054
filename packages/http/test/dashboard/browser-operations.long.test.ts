import { batch } from "@tritonjs/core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  withoutBrowser,
} from "../../../../test/support/browser.js";
import { repositoryOf } from "./support/model-repository.js";
import { openDashboard } from "./support/open-dashboard.js";

const x = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const y = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

/** The value beside a name in a list of facts. */
const fact = (page: Page, name: string, value: string | RegExp) =>
  page
    .locator(".facts div", { has: page.locator("dt", { hasText: name }) })
    .locator("dd", { hasText: value });

if (!hasBrowser) it.skip(`operations of the dashboard in a browser${withoutBrowser}`, () => {});

describe.runIf(hasBrowser)("operations of the dashboard in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  it("loads, reloads and unloads a model of a repository with its buttons", async () => {
    const modelRepository = await repositoryOf("later");
    const { triton, root } = await openDashboard({ modelRepository, modelControlMode: "explicit" });
    await triton.loadModel("later");
    await triton.unloadModel("later");
    const { page, complaints } = await openPage(browser, `${root}/#model=later&version=1`);
    const row = page.locator("tr", { has: page.getByRole("button", { name: "later" }) });
    await row.getByText("UNAVAILABLE").waitFor();
    await page.getByRole("button", { name: "Load", exact: true }).click();
    await row.getByText("READY", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByRole("button", { name: "Unload" }).click();
    await row.getByText("UNAVAILABLE").waitFor();
    expect(complaints).toEqual([]);
    // A model that the program binds has no such buttons.
    await page.getByRole("button", { name: "double" }).click();
    await page.getByRole("heading", { name: "double 1" }).waitFor();
    expect(await page.getByRole("button", { name: /^(Load|Reload|Unload)$/ }).count()).toBe(0);
    await page.close();
  });

  it("shows the cache, and the restart of a worker that died", async () => {
    const { triton, root } = await openDashboard({ responseCache: { byteSize: 1024 * 1024 } });
    const cached = triton.bind({
      modelName: "cached",
      inputs: x,
      outputs: y,
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4, responseCache: true },
    });
    const mortal = triton.bind({
      modelName: "mortal",
      inputs: x,
      outputs: y,
      inferFunc: new URL("../../../core/test/behaviours/fixtures/ends-on-demand.mjs", import.meta.url),
      config: { maxBatchSize: 1 },
    });
    await mortal.ready();
    const { page } = await openPage(browser, `${root}/#model=cached&version=1`);
    await page.getByRole("heading", { name: "Response cache" }).waitFor();
    for (let i = 0; i < 3; i++) await cached.inferSample({ x: [7] });
    await fact(page, "Hits", "2 of 3").waitFor();
    await fact(page, "Cache hits", "2").waitFor();
    await page.getByRole("button", { name: "mortal" }).click();
    const instance = page.locator("tr", { hasText: "mortal_0" });
    await instance.getByText("idle").waitFor();
    await mortal.inferSample({ x: [-1] }).catch(() => {});
    await instance.locator("td", { hasText: /^1$/ }).waitFor();
    await instance.getByText("idle").waitFor();
    await page.locator(".errors").getByText("exited with code 3").waitFor();
    await page.close();
  });

  it("offers no number of instances for an ensemble", async () => {
    const { triton, root } = await openDashboard();
    const tensor = (name: string) => [{ name, dtype: "FP32", shape: [-1] }] as const;
    triton.bindEnsemble({
      modelName: "whole",
      inputs: tensor("x"),
      outputs: tensor("y"),
      config: { maxBatchSize: 8 },
      steps: [{ modelName: "double", inputMap: { x: "x" }, outputMap: { y: "y" } }],
    });
    await triton.ready();
    const { page } = await openPage(browser, `${root}/#model=double&version=1`);
    const count = page.getByRole("spinbutton", { name: "Instances" });
    await count.waitFor();
    await page.getByRole("button", { name: "whole" }).click();
    await page.getByRole("heading", { name: "whole 1" }).waitFor();
    await expect.poll(() => count.count()).toBe(0);
    await page.close();
  });

  it.each([
    ["light", 1280],
    ["dark", 1280],
    ["light", 400],
    ["dark", 400],
  ] as const)(
    "has no fault of accessibility that axe finds, in %s at %d pixels",
    async (colorScheme, width) => {
      const viewport = { width, height: 800 };
      const { double, triton, root } = await openDashboard({ responseCache: { byteSize: 1024 * 1024 } });
      triton.server.log.error("a line of the log");
      await double.inferSample({ x: [1] });
      await double.inferSample({ x: [-1] }).catch(() => {});
      const { page } = await openPage(browser, `${root}/`, { colorScheme, viewport });
      await page.getByRole("button", { name: "double" }).waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.goto(`${root}/#model=double&version=1`);
      await page.getByRole("button", { name: "Infer" }).waitFor();
      await page.locator(".chart canvas").first().waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.close();
    },
  );
});
