import type { WebPages } from "@tritonjs/core/frontend";
import { allOptions, type OptionValues } from "../options/options.js";
import { httpRestrictions } from "./open-frontends.js";

/** Options whose values hold secrets. */
const SECRET: ReadonlySet<string> = new Set([
  "access-token",
  "http-restricted-api",
  "grpc-restricted-protocol",
  "openai-api-key",
  "openai-restricted-api",
  "cache-config",
]);

/** Loads the dashboard and sets it up: with the restrictions of HTTP, and the options that differ from the defaults. */
export async function openDashboard(values: OptionValues): Promise<WebPages> {
  const { dashboard } = await import("@tritonjs/dashboard");
  return dashboard({
    restrictions: httpRestrictions(values, "dashboard"),
    configuration: changedOptions(values),
  });
}

/** Texts of the options that are not at their defaults. */
export function changedOptions(values: OptionValues): Record<string, string> {
  const initial: Readonly<Record<string, { readonly initial: unknown }>> = allOptions;
  const changed: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    const text = textOf(value);
    if (text !== textOf(initial[name]?.initial)) changed[`--${name}`] = SECRET.has(name) ? "(set)" : text;
  }
  return changed;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
