import { describeLibraries, diagnoseGpus, hasNothingOfNvidia } from "@tritonjs/backends/onnxruntime";
import { Command, Option } from "commander";
import type { CommandContext } from "../command-context.js";

/**
 * `tritonjs doctor`: says what ONNX Runtime and NVIDIA's GPUs lack on this machine, with the command that mends each.
 * Each library is opened in a process of its own.
 */
export function doctorCommand({ terminal, finish }: CommandContext): Command {
  return new Command("doctor")
    .description("find out why models do not run on the GPU of this machine, and what to do about it")
    .addOption(
      new Option("--provider <name>", "execution provider to examine")
        .choices(["cuda", "tensorrt"])
        .default("cuda"),
    )
    .option("--json", "print the findings as JSON")
    .action(async ({ provider, json }: { readonly provider: "cuda" | "tensorrt"; readonly json?: true }) => {
      const [libraries, findings] = await Promise.all([
        describeLibraries(),
        diagnoseGpus(undefined, provider),
      ]);
      const wrong = findings.filter(({ isGood }) => !isGood);
      if (json) {
        terminal.write(`${JSON.stringify({ libraries, findings }, undefined, 2)}\n`);
      } else {
        for (const { file, source, version, providers, build, fault } of libraries) {
          const what =
            fault === undefined
              ? `${version} (${providers!.join(", ")}; ${build})`
              : `cannot be used: ${fault}`;
          terminal.write(`ONNX Runtime of ${source}, ${file}: ${what}\n`);
        }
        for (const { subject, isGood, text, fix } of findings) {
          terminal.write(`${isGood ? "ok   " : "wrong"} ${subject}: ${text}\n`);
          if (fix !== undefined) terminal.write(`      mend it: ${fix}\n`);
        }
        terminal.write(`${conclusion(wrong.length, hasNothingOfNvidia(findings), provider)}\n`);
      }
      finish(wrong.length === 0 ? 0 : 1);
    });
}

function conclusion(wrong: number, hasNoGpu: boolean, provider: string): string {
  if (wrong === 0) return `Models can run with '${provider}'.`;
  if (hasNoGpu) return "This machine has nothing of NVIDIA: models run on the CPU.";
  return `${wrong} ${wrong === 1 ? "thing keeps" : "things keep"} models from '${provider}'. Mend them from top to bottom.`;
}
