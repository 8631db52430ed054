import { mkdirSync } from "node:fs";
import { batch } from "@tritonjs/core";
import { rollouts } from "@tritonjs/operations/rollout";
import array from "ndarray";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  hasBrowser,
  openBrowser,
  openPage,
  overflowOf,
  withoutBrowser,
} from "../../../../test/support/browser.js";
import { openDashboard, sendByDeadlines } from "./support/open-dashboard.js";

/** A red PNG image of one pixel. */
const RED = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
  "base64",
);

/** A dashboard of models for numbers, text and images, and of one that streams. */
async function openModels(options = {}, more = {}) {
  const opened = await openDashboard(options, more);
  const { triton } = opened;
  triton.bind({
    modelName: "shout",
    inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "loud", dtype: "BYTES", shape: [1] }],
    inferFunc: batch(({ text }) => ({
      loud: array(
        Array.from(text.data, (one) => Buffer.from(Buffer.from(one).toString().toUpperCase())),
        text.shape as number[],
      ),
    })),
  });
  triton.bind({
    modelName: "mean_color",
    inputs: [{ name: "image", dtype: "FP32", shape: [3, 4, 4] }],
    outputs: [{ name: "rgb", dtype: "FP32", shape: [3] }],
    inferFunc: batch(({ image }) => {
      const mean = [0, 1, 2].map((c) => image.data.slice(c * 16, c * 16 + 16).reduce((a, b) => a + b) / 16);
      return { rgb: [mean] };
    }),
  });
  triton.bind({
    modelName: "count",
    inputs: [{ name: "n", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "i", dtype: "INT32", shape: [1] }],
    async *inferFunc([request]) {
      for (let i = 1; i <= request!.inputs.n.get(0); i++) yield [{ i: [i] }];
    },
    config: { batching: false, decoupled: true },
  });
  await triton.ready();
  return opened;
}

const infer = (page: Page) => page.getByRole("button", { name: "Infer" });
const values = (page: Page) => page.getByRole("textbox", { name: "Values" });
const answers = (page: Page) => page.locator(".answers");

if (!hasBrowser) it.skip(`the dashboard in a browser${withoutBrowser}`, () => {});

describe.runIf(hasBrowser)("the dashboard in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  it("shows both versions of a rollout side by side, live, and the reasons of its end", async () => {
    const updates = rollouts();
    const { triton, root } = await openModels({ extensions: [updates] });
    for (const modelVersion of [1, 2]) {
      triton.bind({
        modelName: "canary",
        modelVersion,
        inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: batch(({ x }) => {
          if (modelVersion === 2) throw new Error("the planted fault");
          return { y: x };
        }),
        config: { maxBatchSize: 4 },
      });
    }
    await triton.ready();
    await updates.start("canary", { from: 1, to: 2, share: 50, seed: 1 });
    const { page, complaints } = await openPage(browser, `${root}/#model=canary&version=1`);
    const card = page.getByRole("region", { name: "Rollout of canary" });
    await card.getByText("running").waitFor();
    expect(await card.getByRole("columnheader").allTextContents()).toEqual(["", "version 1", "version 2"]);
    expect(await card.getByRole("row", { name: "Share 50% 50%" }).count()).toBe(1);
    for (let i = 0; i < 200; i++) await triton.infer("canary", { x: [[i]] }).catch(() => {});
    await card.getByText("rolled back").waitFor();
    await card.getByRole("row", { name: "Share 100% 0%" }).waitFor();
    expect(await card.getByRole("row", { name: /^Errors 0 of / }).count()).toBe(1);
    expect(await card.getByRole("status").textContent()).toContain("errors");
    expect(await overflowOf(page)).toBe(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("shows the models live, and text of clients as text", async () => {
    const { triton, double, root } = await openModels();
    triton.server.log.error("<img src=x onerror=alert(1)> in the log");
    await double.inferSample({ x: [-1] }).catch(() => {});
    const { page, complaints } = await openPage(browser, `${root}/#model=double&version=1`);
    for (const name of ["double", "shout", "mean_color", "count"]) {
      await page.getByRole("button", { name, exact: true }).waitFor();
    }
    await page.locator(".errors").getByText("<img src=x onerror=alert(1)>").waitFor();
    await page.locator(".log").getByText("<img src=x onerror=alert(1)> in the log").waitFor();
    expect(await page.locator("img").count()).toBe(0);
    await double.inferSample({ x: [1] });
    await page
      .locator("dt", { hasText: /^Requests$/ })
      .locator("+ dd", { hasText: "1" })
      .waitFor();
    expect(await page.locator(".chart canvas").count()).toBe(4);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("shows for each class what was in time, late and refused, and why", async () => {
    const { triton, root } = await openModels();
    await sendByDeadlines(triton);
    const { page, complaints } = await openPage(browser, `${root}/#model=squares&version=1`);
    const table = page.getByRole("region", { name: "Deadlines by class" });
    await table.waitFor();
    const cells = (row: number) => table.locator("tbody tr").nth(row).locator("th, td").allTextContents();
    expect(await cells(0)).toEqual(["gold level 1", "6 100%", "0", "0", "0", "0", ""]);
    expect((await cells(1)).map((text) => text.trim())).toEqual([
      "<b>slow</b> level 2",
      "0 0%",
      "0",
      "3",
      "0",
      "0",
      "slow_model 3",
    ]);
    expect(await table.getByText("slow_model 3").getAttribute("title")).toContain("the limit is shorter");
    expect(await overflowOf(page)).toBeLessThanOrEqual(0);
    await page.getByRole("button", { name: "double" }).click();
    await table.waitFor({ state: "detached" });
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("builds requests of numbers, texts and images, and reads streams", async () => {
    const { root } = await openModels();
    const { page, complaints } = await openPage(browser, `${root}/#model=double&version=1`);
    await page.getByLabel("Shape").fill("2, 2");
    await values(page).fill("1, 2.5, -0, 4");
    await infer(page).click();
    await answers(page).getByText("2, 5, 0, 8").waitFor();
    await values(page).fill("1, two");
    await infer(page).click();
    await page.getByRole("alert").getByText('expected a value of FP32, got "two"').waitFor();

    await page.getByRole("button", { name: "shout" }).click();
    await page.getByLabel(/^Text/).fill("hello <i>you</i>");
    await infer(page).click();
    await answers(page).getByText("HELLO <I>YOU</I>").waitFor();

    await page.getByRole("button", { name: "mean_color" }).click();
    await page.getByLabel("From").selectOption("image file");
    await page
      .locator('input[accept="image/*"]')
      .setInputFiles({ name: "red.png", mimeType: "image/png", buffer: RED });
    await infer(page).click();
    await answers(page)
      .getByText(/^1, 0(\.\d+)?, 0(\.\d+)?$/)
      .waitFor();

    await page.getByRole("button", { name: "count", exact: true }).click();
    await values(page).fill("3");
    await infer(page).click();
    await expect.poll(() => answers(page).locator("dd").allTextContents()).toEqual(["1", "2", "3"]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("works with the keyboard alone", async () => {
    const { root } = await openModels();
    const { page } = await openPage(browser, `${root}/`);
    await page.getByRole("button", { name: "double" }).waitFor();
    const tabTo = async (name: string) => {
      const focused = () => page.evaluate<string>("document.activeElement?.textContent?.trim()");
      for (let i = 0; i < 60 && (await focused()) !== name; i++) await page.keyboard.press("Tab");
      expect(await focused()).toBe(name);
    };
    await tabTo("Skip to the models");
    await tabTo("double");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "double 1" }).waitFor();
    await values(page).waitFor();
    await tabTo("Infer");
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await page.keyboard.press("Enter");
    await answers(page).locator("dd").first().waitFor();
    await page.close();
  });

  it("fits a phone without scrolling sideways, and follows the dark scheme", async () => {
    const { root } = await openModels();
    for (const colorScheme of ["light", "dark"] as const) {
      const viewport = { width: 340, height: 700 };
      const { page } = await openPage(browser, `${root}/#model=double&version=1`, { colorScheme, viewport });
      await page.locator(".chart canvas").first().waitFor();
      await values(page).waitFor();
      expect(await overflowOf(page)).toBeLessThanOrEqual(0);
      const back = await page.evaluate("getComputedStyle(document.body).backgroundColor");
      expect(back).toBe(colorScheme === "light" ? "rgb(244, 245, 247)" : "rgb(20, 23, 27)");
      await page.close();
    }
  });

  it("asks for the access token, and changes instances with it", async () => {
    const { double, root } = await openModels({ security: { accessToken: "secret" } });
    const { page } = await openPage(browser, `${root}/#model=double&version=1`);
    await page.getByText("triton-access-token").waitFor();
    await page.getByLabel("Value").fill("secret");
    await page.getByRole("button", { name: "Connect" }).click();
    await page.getByRole("spinbutton", { name: "Instances" }).fill("2");
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByText("changed").waitFor();
    expect(double.instances()).toHaveLength(2);
    await page.close();
  });

  it("says that the connection is lost, and connects again", async () => {
    const { root } = await openModels();
    const { page } = await openPage(browser, `${root}/`);
    await page.getByText("live", { exact: true }).waitFor();
    await page.route("**/api/events/double/1", (route) => route.abort());
    await page.getByRole("button", { name: "double" }).click();
    await page.getByText("connection lost").waitFor();
    await page.unrouteAll();
    await page.getByText("live", { exact: true }).waitFor();
    await page.close();
  });

  const folder = process.env.TRITONJS_SCREENSHOTS;
  if (folder === undefined) return;
  it("makes the screenshot of the documents", async () => {
    mkdirSync(folder, { recursive: true });
    const { triton, root } = await openModels({}, { intervalMs: 250 });
    let over = false;
    const callers = Array.from({ length: 12 }, async (_, i) => {
      while (!over) {
        await triton.infer("double", { x: [[1, 2]] });
        await new Promise((resolve) => setTimeout(resolve, (i * 7) % 30));
      }
    });
    const viewport = { width: 1280, height: 900 };
    const { page } = await openPage(browser, `${root}/#model=double&version=1`, { viewport });
    await page.waitForTimeout(25_000);
    await page.screenshot({ path: `${folder}/dashboard.png` });
    over = true;
    await Promise.all(callers);
    await page.close();
  });
});
