import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  withoutBrowser,
} from "../support/browser.js";
import { exampleFolder } from "../support/example-readme.js";

const folder = exampleFolder("speech-recognition");
const recordings = JSON.parse(readFileSync(join(folder, "recordings/recordings.json"), "utf8")) as {
  readonly name: string;
  readonly text: string;
}[];

let server: { url: string; close(): Promise<void> };
beforeAll(async () => {
  if (!hasBrowser) return;
  const { openPageServer } = (await import(join(folder, "dist", "page-server.js"))) as {
    openPageServer(port: number): Promise<typeof server>;
  };
  server = await openPageServer(0);
});
afterAll(() => server?.close());

describe.skipIf(!hasBrowser)(`the page of dictation${withoutBrowser}`, () => {
  const { name, text } = recordings[1]!;
  const file = join(folder, "recordings", name);

  it("writes down a recording", async () => {
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const { page, complaints } = await openPage(browser, server.url);
    await page.getByLabel("or a recording").setInputFiles(file);
    await expect.poll(() => page.getByRole("status").first().textContent()).toBe("Done");
    expect(await page.locator("output").textContent()).toBe(text);
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it("writes down what the microphone hears, while it hears it", async () => {
    // Chromium plays the file as the microphone.
    const browser = await openBrowser([
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream",
      `--use-file-for-fake-audio-capture=${file}%noloop`,
    ]);
    onTestFinished(() => browser.close());
    const { page } = await openPage(browser, server.url);
    await page.getByRole("button", { name: "Speak" }).click();
    const output = page.locator("output");
    const words = text.split(" ");
    await expect.poll(() => output.textContent()).toContain(words.at(-1));
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.getByRole("button", { name: "Speak" }).count()).toBe(1);
    // The capture may begin a moment after the file does.
    expect(await output.textContent()).toContain(words.slice(2).join(" "));
  });
});
