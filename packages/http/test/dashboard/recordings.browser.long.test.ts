import { Triton } from "@tritonjs/core";
import { recordScheduling } from "@tritonjs/operations/time-travel";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  withoutBrowser,
} from "../../../../test/support/browser.js";
import { openDashboard, sendByDeadlines } from "./support/open-dashboard.js";

/** Two samples a second: a page that changes 50 times a second is hard to click on a busy machine. */
const CALM = { intervalMs: 500 };

if (!hasBrowser) it.skip(`recordings in the dashboard${withoutBrowser}`, () => {});

describe.runIf(hasBrowser)("recordings in the dashboard", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  it("steps through the server's recording, and explains a late request", async () => {
    const extensions = [recordScheduling({ keep: "last" })];
    const { triton, double, root } = await openDashboard({ extensions }, CALM);
    const sent = ["a", "b", "c"].map((id) => double.inferSample({ x: [1] }, { id }));
    await Promise.all(sent);
    await sendByDeadlines(triton);
    const { page, complaints } = await openPage(browser, `${root}/`);
    await page.getByText("No recording is open.").waitFor();
    await page.getByRole("button", { name: "Load the server's recording" }).click();
    const moment = page.locator(".moment");
    await moment.getByText("request a (#0) arrives").waitFor();
    // With the keyboard alone: the slider steps forward, to its end and back.
    await page.getByRole("slider", { name: "Moment" }).focus();
    for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
    await moment.getByText(/batch #0 of 3 rows begins at double_0/).waitFor();
    await page.getByText("No request waits.").waitFor();
    expect(await page.locator(".batch.runs").allTextContents()).toEqual(["#0"]);
    await page.getByRole("button", { name: "Step back" }).click();
    await page.getByText("Waiting at this moment: 3").waitFor();
    await page.getByRole("textbox", { name: "Request" }).fill("b");
    await page.keyboard.press("Enter");
    const explanation = page.getByLabel("Explanation");
    await explanation.getByText("shared it with 2 requests: 'a' (#0), 'c' (#2)").waitFor();
    await page.getByRole("combobox", { name: "Model" }).selectOption("squares 1");
    await page.getByRole("region", { name: "Why a request was late" }).locator(".link").first().click();
    await explanation.getByText(/to model 'squares' version 1/).waitFor();
    await page.getByRole("textbox", { name: "Request" }).fill("nobody");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("the recording has no request 'nobody'").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("opens a file, and says why another one is not a recording", async () => {
    const recording = recordScheduling();
    const recorded = await openDashboard({ extensions: [recording] });
    await recorded.double.inferSample({ x: [1] }, { id: "<b>one</b>" });
    const { root } = await openDashboard({}, CALM);
    const { page, complaints } = await openPage(browser, `${root}/`, {
      viewport: { width: 400, height: 800 },
    });
    await page.getByText("This server records nothing").waitFor();
    expect(await page.getByRole("button", { name: /server's recording/ }).count()).toBe(0);
    const file = page.getByLabel("Recording", { exact: true });
    await file.setInputFiles({ name: "cat.png", mimeType: "image/png", buffer: Buffer.from("meow") });
    await page
      .getByText("cat.png is not a recording of the scheduling: expected a file that begins")
      .waitFor();
    const buffer = Buffer.from(recording.bytes());
    await file.setInputFiles({ name: "one.tape", mimeType: "application/octet-stream", buffer });
    await page.locator(".moment").getByText("request <b>one</b> (#0) arrives").waitFor();
    const empty = Buffer.from(recordedNothing());
    await file.setInputFiles({ name: "empty.tape", mimeType: "application/octet-stream", buffer: empty });
    await page.getByText("No request came while the server recorded.").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.close();
  });
});

/** A recording of a server without requests. */
function recordedNothing(): Uint8Array {
  const recording = recordScheduling({ keep: "last" });
  void new Triton({ extensions: [recording] }).close();
  return recording.bytes();
}
