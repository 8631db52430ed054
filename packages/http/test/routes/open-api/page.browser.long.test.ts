import { expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  overflowOf,
  withoutBrowser,
} from "../../../../../test/support/browser.js";
import { IdentityService, identityConfig } from "../../support/identity-service.js";
import { startHttp } from "../../support/start-http.js";

it.runIf(hasBrowser)(
  `the page of the OpenAPI document is styled, fits its window and is accessible${withoutBrowser}`,
  async () => {
    const port = await startHttp(new IdentityService(identityConfig("m", "INT32")), { openApi: true });
    const browser = await openBrowser();
    try {
      for (const colorScheme of ["light", "dark"] as const) {
        const options = { colorScheme, viewport: { width: 400, height: 800 } };
        const { page, complaints } = await openPage(browser, `http://localhost:${port}/v2/docs`, options);
        await page.getByText("/v2/models/{model}/infer", { exact: true }).click();
        expect(await page.locator("#infer").getByRole("table").isVisible()).toBe(true);
        expect(await page.evaluate("getComputedStyle(document.querySelector('details')).borderRadius")).toBe(
          "4px",
        );
        expect(await overflowOf(page)).toBeLessThanOrEqual(0);
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(complaints.filter((one) => !one.includes("favicon"))).toEqual([]);
        await page.close();
      }
    } finally {
      await browser.close();
    }
  },
);
