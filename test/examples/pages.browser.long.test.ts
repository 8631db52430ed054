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
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";

const folder = exampleFolder("models-in-a-page");

const title = `the page answers in a web worker, also without its server${withoutBrowser}`;

describe("models in a page", () => {
  it("lists what the page loads", async () => {
    const main = join(folder, "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, ["--once"], folder).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("models-in-a-page"));
  });

  it.skipIf(!hasBrowser)(title, { timeout: 180_000 }, async () => {
    const { openPageServer } = (await import(join(folder, "dist", "page-server.js"))) as {
      openPageServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
    };
    const server = await openPageServer(0);
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const { page, complaints } = await openPage(browser, server.url);
    const classify = page.getByRole("button", { name: "Classify" });
    const status = page.getByRole("status");
    await page.waitForSelector("body[data-ready=here]");
    await classify.click();
    await expect.poll(() => status.textContent()).toBe("setosa, 100%, in this page");
    await server.close();
    await page.getByLabel("Measurements").fill("6.3 3.3 6 2.5");
    await classify.click();
    await expect.poll(() => status.textContent()).toMatch(/^virginica, \d+%/);
    await page.getByLabel("Measurements").fill("6.3 3.3");
    await classify.click();
    await expect.poll(() => status.textContent()).toMatch(/input 'measurements'/);
    expect(complaints.filter((text) => !/ERR_CONNECTION_REFUSED/.test(text))).toEqual([]);
  });
});

describe("the chat page", () => {
  it.skipIf(!hasBrowser)(`the chat page shows a streamed answer, and stops it${withoutBrowser}`, async () => {
    const module = join(exampleFolder("chat-page"), "dist", "chat-server.js");
    const { openChatServer } = (await import(module)) as {
      openChatServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
    };
    const server = await openChatServer(0);
    onTestFinished(() => server.close());
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const { page, complaints } = await openPage(browser, server.url);
    const answers = page.locator(".assistant");
    const [send, stop] = ["Send", "Stop"].map((name) => page.getByRole("button", { name }));
    await send!.click();
    await expect.poll(() => answers.first().textContent()).toMatch(/^Once there was a \w+ \w+/);
    await expect.poll(() => send!.isEnabled()).toBe(true);
    await page.getByLabel("Question").fill("Write a story about a blue dog!");
    await send!.click();
    await stop!.click().catch(() => {});
    await expect.poll(() => send!.isEnabled()).toBe(true);
    expect(await page.locator(".error").count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("a page with the client", () => {
  it.skipIf(!hasBrowser)(`the page shows results of the model, and its errors${withoutBrowser}`, async () => {
    const module = join(exampleFolder("browser-and-edge"), "dist", "page-server.js");
    const { openPageServer } = (await import(module)) as {
      openPageServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
    };
    const server = await openPageServer(0);
    onTestFinished(() => server.close());
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const { page, complaints } = await openPage(browser, server.url);
    const send = page.getByRole("button", { name: "Send" });
    const status = page.getByRole("status");
    await send.click();
    await expect.poll(() => status.textContent()).toBe("mean 5, deviation 2");
    expect(complaints).toEqual([]);
    await page.getByLabel("Numbers").fill("1 two");
    await send.click();
    await expect.poll(() => status.textContent()).toBe("values: expected finite numbers, got NaN");
  });
});

describe("speech recognition in a page", () => {
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
});
