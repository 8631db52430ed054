import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findInstalled, VERSION } from "@tritonjs/core/internal";
import { Command, Option } from "commander";
import type { CommandContext } from "../command-context.js";
import { sampleModel } from "./sample-model.js";

/** `tritonjs init`: writes a sample repository, or a program to begin with. */
export function initCommand({ terminal, finish }: CommandContext): Command {
  const template = new Option(
    "--template <name>",
    "a model repository, an application that calls its models in process, or a service on HTTP and gRPC",
  )
    .choices([...TEMPLATES])
    .default("repository");
  return new Command("init")
    .description("write a sample to begin with; files that exist are left alone")
    .argument("[folder]", "where to write it; `models` for a repository, else the name of the template")
    .addOption(template)
    .action(async (given: string | undefined, options: { readonly template: TemplateName }) => {
      const folder = given ?? (options.template === "repository" ? "models" : options.template);
      const { written, kept } = await writeTemplate(options.template, folder);
      for (const path of written) terminal.write(`wrote ${path}\n`);
      for (const path of kept) terminal.writeError(`${path} exists: kept as it is\n`);
      if (written.length > 0) terminal.write(`\n${nextStep(options.template, folder)}\n`);
      finish(kept.length > 0 ? 1 : 0);
    });
}

function nextStep(template: TemplateName, folder: string): string {
  if (template === "repository") {
    const isReady = findInstalled("onnxruntime-node", import.meta.url) !== undefined;
    const needs = "Its model needs ONNX Runtime beside this command: npm install onnxruntime-node\n";
    return `${isReady ? "" : needs}Serve it: tritonjs serve --model-repository ${folder}`;
  }
  return `Start it: cd ${folder} && npm install && npm start`;
}

/** Templates of `tritonjs init --template`. */
const TEMPLATES = ["repository", "app", "service"] as const;

type TemplateName = (typeof TEMPLATES)[number];

const FOLDER = fileURLToPath(new URL("../../templates/", import.meta.url));

/** The result of {@link writeTemplate}. */
interface WrittenTemplate {
  readonly written: readonly string[];
  /** Existing files, which were not changed. */
  readonly kept: readonly string[];
}

/**
 * Writes a model repository with a sample, or a program with such a repository in its folder `models`. Existing files
 * are not overwritten.
 */
async function writeTemplate(template: TemplateName, folder: string): Promise<WrittenTemplate> {
  const files = template === "repository" ? sampleRepository(folder) : await programFiles(template);
  const written: string[] = [];
  const kept: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    const isNew = await writeNew(path, content);
    (isNew ? written : kept).push(path);
  }
  return { written, kept };
}

async function programFiles(template: TemplateName): Promise<Record<string, string | Uint8Array>> {
  const files: Record<string, string | Uint8Array> = {};
  for (const path of await readdir(join(FOLDER, template), { recursive: true })) {
    if ((await stat(join(FOLDER, template, path))).isDirectory()) continue;
    const text = await readFile(join(FOLDER, template, path), "utf8");
    // npm leaves a file that is called .gitignore out of a package.
    const name = path === "gitignore" ? ".gitignore" : path;
    files[name] = path === "package.json" ? text.replaceAll("VERSION", VERSION) : text;
  }
  for (const [path, content] of Object.entries(sampleRepository("models")))
    files[join("models", path)] = content;
  return files;
}

async function writeNew(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

const config = `# The fields are those of Triton: docs/model-configuration.md of tritonjs has them all.
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "features" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
dynamic_batching { max_queue_delay_microseconds: 500 }
`;

const readme = (folder: string) => `# A model repository

\`tritonjs serve --model-repository ${folder}\` serves it, on the ports 8000 (HTTP), 8001 (gRPC) and 8002 (metrics).
The model is an ONNX file: it needs \`npm install onnxruntime-node\` where \`@tritonjs/cli\` is installed.
Ask it: \`curl localhost:8000/v2/models/classifier/infer -d '{"inputs":[{"name":"features","datatype":"FP32","shape":[1,4],"data":[5,3,1,0]}]}'\`
Each model is a folder with its configuration, \`config.pbtxt\`, and a folder for each version with the model's file.
Look for mistakes with \`tritonjs config check ${folder}\`; write TypeScript types with \`tritonjs types ${folder} --out models.d.ts\`.
`;

/** The files of a repository with one model that works at once. */
function sampleRepository(folder: string): Record<string, string | Uint8Array> {
  return {
    "README.md": readme(folder),
    "classifier/config.pbtxt": config,
    "classifier/labels.txt": "small\nmedium\nlarge\n",
    "classifier/1/model.onnx": sampleModel(),
  };
}
