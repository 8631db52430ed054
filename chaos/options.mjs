import { parseArgs } from "node:util";

/**
 * Options of `npm run chaos`.
 *
 * @throws Error for an invalid option
 */
export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string", default: "1" },
      report: { type: "string" },
      logs: { type: "string" },
      quiet: { type: "boolean", default: false },
    },
  });
  return {
    minutes: number("minutes", values.minutes, (value) => value > 0),
    seed: number("seed", values.seed, Number.isSafeInteger),
    report: values.report,
    logs: values.logs,
    quiet: values.quiet,
  };
}

function number(name, text, isValid) {
  const value = Number(text);
  if (text === "" || !isValid(value)) throw new Error(`--${name}: expected a number, got '${text}'`);
  return value;
}
