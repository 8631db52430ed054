import { sample } from "@tritonjs/core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  withoutBrowser,
} from "../../../../test/support/browser.js";
import { openDashboard } from "./support/open-dashboard.js";

if (!hasBrowser) it.skip(`the dashboard of many models in a browser${withoutBrowser}`, () => {});

/** Names in the drawn rows. */
const names = (page: Page) => page.locator(".models tbody .link").allTextContents();

describe.runIf(hasBrowser)("the dashboard of many models in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  async function open(count: number) {
    const { triton, root } = await openDashboard({}, { intervalMs: 100 });
    const handles = Array.from({ length: count }, (_, i) =>
      triton.bind({
        modelName: `m${String(i).padStart(4, "0")}`,
        inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: sample(({ x }) => ({ y: x })),
      }),
    );
    await triton.ready();
    const opened = await openPage(browser, `${root}/`, { viewport: { width: 1280, height: 900 } });
    await opened.page.getByText(`${count + 1} of ${count + 1}`).waitFor();
    return { handles, ...opened };
  }

  it("draws the rows in sight alone, wherever the list is scrolled", async () => {
    const { page, complaints } = await open(2000);
    expect((await names(page)).length).toBeLessThanOrEqual(40);
    expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(1500);
    await page.evaluate("document.querySelector('.rows').scrollTop = 1e9");
    await page.getByRole("button", { name: "m1999" }).waitFor();
    expect((await names(page)).length).toBeLessThanOrEqual(40);
    expect(complaints).toEqual([]);
  });

  it("filters and sorts, and shows the details below the list", async () => {
    const { handles, page, complaints } = await open(50);
    await page.getByRole("searchbox", { name: "Filter" }).fill("M004");
    await expect.poll(() => names(page)).toHaveLength(10);
    await page.getByRole("button", { name: "m0042" }).click();
    const detail = page.getByRole("heading", { name: /m0042/ });
    await detail.waitFor();
    await page.getByRole("searchbox", { name: "Filter" }).fill("");
    const { y } = (await detail.boundingBox())!;
    expect(y).toBeLessThan(900);
    const busy = setInterval(() => void handles[33]!.inferSample({ x: [1] }), 5);
    try {
      await page.getByRole("button", { name: "Requests/s" }).click();
      await expect.poll(async () => (await names(page))[0]).toBe("m0033");
      expect(await page.getByRole("columnheader", { name: "Requests/s" }).getAttribute("aria-sort")).toBe(
        "descending",
      );
    } finally {
      clearInterval(busy);
    }
    await page.getByRole("button", { name: "Model", exact: true }).click();
    await page.getByRole("button", { name: "Model ↑", exact: true }).click();
    await expect.poll(async () => (await names(page))[0]).toBe("m0049");
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
