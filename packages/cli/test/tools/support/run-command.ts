// The built package: its threads cannot run sources.
import { perf } from "@tritonjs/cli/tools";

/** Runs `tritonjs perf` with a command line whose arguments have no spaces. */
export async function runCommand(line: string) {
  let output = "";
  let errors = "";
  const code = await perf(line.split(" "), {
    write: (text) => {
      output += text;
    },
    writeError: (text) => {
      errors += text;
    },
    stopRequested: () => new Promise(() => {}),
  });
  return { code, output, errors };
}
