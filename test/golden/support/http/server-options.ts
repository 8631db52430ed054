import type { HttpOptions } from "@tritonjs/http";

type Restrictions = Record<string, { header: string; value: string }>;

/** The recorded server is a command, whose errors name its flag. */
const LIMIT_NAME = { maxInputSizeName: "--http-max-input-size" };

/**
 * Turns the flags of a recorded server into options of the frontend; flags that only choose models have no effect. A
 * server without restrictions of its own has the library's.
 */
export function serverOptions(flags: readonly string[]): HttpOptions {
  const restrictions: Restrictions = {};
  const options: { maxInputSizeName: string; maxInputSize?: number; headerForwardPattern?: string } = {
    ...LIMIT_NAME,
  };
  for (const flag of flags) {
    const [, name, value = ""] = /^--([^=]+)=(.*)$/.exec(flag) ?? [];
    if (name === "http-max-input-size") options.maxInputSize = Number(value);
    if (name === "http-header-forward-pattern") options.headerForwardPattern = value;
    if (name === "http-restricted-api") Object.assign(restrictions, restrictionsOf(value));
  }
  return Object.keys(restrictions).length === 0 ? options : { ...options, restrictions };
}

/** `health,metadata:key=value`: the groups, then the header that they require. */
function restrictionsOf(text: string): Restrictions {
  const [, groups = "", header = "", value = ""] = /^([^:]+):([^=]+)=(.*)$/.exec(text) ?? [];
  return Object.fromEntries(groups.split(",").map((group) => [group, { header, value }]));
}
