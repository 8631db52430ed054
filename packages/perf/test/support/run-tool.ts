import type { ToolTerminal } from "../../src/command/tool-command.js";

/** Runs a command without interruption, and returns what it wrote. */
export async function runTool(
  tool: (args: readonly string[], terminal: ToolTerminal) => Promise<number>,
  args: readonly string[],
) {
  let output = "";
  let errors = "";
  const code = await tool(args, {
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
