/*
 * How long does docs/getting-started.md take on a fresh machine, its first step and all ten? Packs the packages, and
 * runs the page's `npm install` lines and programs in an empty folder with an empty npm cache. Other packages come from
 * npm's registry. Install scripts do not run: that of onnxruntime-node downloads CUDA libraries. Reading is counted at a
 * fixed rate.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/run.mjs";
import { median, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const ROUNDS = 3;
/** Less than half of the rate at which adults read prose, because a third of the page is code. */
const WORDS_PER_MINUTE = 100;

const SCOPE = "@tritonjs/";
const shell = process.platform === "win32";
const page = readFileSync(join(root, "docs", "getting-started.md"), "utf8").replaceAll("\r\n", "\n");
const words = page.trim().split(/\s+/).length;
/** The steps without all frameworks of step 5 but one: a reader chooses. */
const steps = page.slice(page.indexOf("## 1. ")).replace(/^### (?!fastify\n).*?(?=^#{2,3} )/gms, "");

/** Ports of Triton may be taken on this machine. */
const onFreePorts = (code) =>
  code.replaceAll("new Triton()", "new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 })");
const [, typed] = /`typed\.mts`.*?^```ts\n(.*?)^```$/ms.exec(steps);
const programs = new Map([
  ...[...steps.matchAll(/^```js\n\/\/ (\S+\.mjs)\n(.*?)^```$/gms)].map(([, name, code]) => [name, code]),
  ["typed.mts", typed],
]);

/** What a program prints according to the page. */
const promisedBy = (name) =>
  new RegExp(`^\`\`\`sh\nnode ${name.replace(".", "\\.")}\n\`\`\`.*?^\`\`\`text\n(.*?)^\`\`\`$`, "ms").exec(
    steps,
  )?.[1];

/** The page's commands in their order. `curl` takes no time that counts. */
const commands = [
  ...steps.matchAll(/\bnpm install (@?[\w/@ .-]*\w)|^node (\S+\.mjs)$|`(npx tsx \S+)`|^npx (tritonjs .+)$/gm),
].map(([, install, program, tsx, command]) => ({
  install,
  program,
  command: tsx?.slice("npx ".length) ?? command,
}));

const started = commands.map(({ program, command }) => program ?? command?.replace("tsx ", ""));
const idle = [...programs.keys()].filter((name) => name !== "models.mjs" && !started.includes(name));
if (idle.length > 0) throw new Error(`the page has no command that starts ${idle.join(", ")}`);

/** A package of ours with the packages of ours that it brings. Here npm finds no released version of them. */
function withOwnDependencies(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))
    if (dependency.startsWith(SCOPE)) withOwnDependencies(dependency.slice(SCOPE.length), found);
  return found;
}

const folder = mkdtempSync(join(tmpdir(), "tritonjs-first-answer-"));
const names = readdirSync(join(root, "packages"));
const packed = spawnSync(
  "npm",
  ["pack", ...names.map((name) => `./packages/${name}`), "--ignore-scripts", "--pack-destination", folder],
  { cwd: root, encoding: "utf8", shell },
);
if (packed.status !== 0)
  throw packed.error ?? new Error(`npm pack ended with ${packed.status}:\n${packed.stderr}`);
const tarballs = readdirSync(folder);
const tarballOf = (name) =>
  join(
    folder,
    tarballs.find((file) => new RegExp(`^tritonjs-${name}-\\d`).test(file)),
  );

/** Arguments of `npm install` that install the packed packages in place of released ones. */
function packedOf(wanted) {
  const all = wanted.split(" ");
  const own = all.filter((name) => name.startsWith(SCOPE)).map((name) => name.slice(SCOPE.length));
  const brought = new Set(own.flatMap((name) => [...withOwnDependencies(name)]));
  return [...[...brought].map(tarballOf), ...all.filter((name) => !name.startsWith(SCOPE))];
}

/** Runs a program, and returns the seconds it took. Throws if it fails or prints something else than promised. */
function timed(command, args, options, promised) {
  const start = performance.now();
  const { status, stdout, stderr, error } = spawnSync(command, args, { ...options, encoding: "utf8", shell });
  const seconds = (performance.now() - start) / 1000;
  const line = `${command} ${args.join(" ")}`;
  if (status !== 0) throw error ?? new Error(`${line} ended with ${status}:\n${stdout}${stderr}`);
  if (promised !== undefined && stdout !== promised)
    throw new Error(`${line}: expected ${promised}, got ${stdout}`);
  return seconds;
}

/** Starts a server, waits for a text in its output, and calls `use` with the output. Returns the seconds of all this. */
async function timedServer(command, args, options, text, use = () => {}) {
  const start = performance.now();
  const child = spawn(command, args, { ...options, shell });
  let output = "";
  const printed = new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk;
      if (output.includes(text)) resolve();
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (code) => reject(new Error(`${args.join(" ")} ended with ${code}:\n${output}`)));
  });
  const ended = once(child, "exit");
  try {
    await printed;
    use(output);
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
  return (performance.now() - start) / 1000;
}

/** Runs the page's commands in an empty project. Returns the seconds of installations and programs, by step. */
async function goThroughPage(project, cache) {
  mkdirSync(project);
  for (const [name, code] of programs) writeFileSync(join(project, name), onFreePorts(code));
  copyFileSync(join(root, "examples", "quickstart", "iris", "iris.onnx"), join(project, "iris.onnx"));
  const options = { cwd: project, env: { ...process.env, npm_config_cache: cache, PORT: "0" } };
  const seconds = {
    firstInstall: timed("npm", ["init", "-y"], options),
    firstProgram: 0,
    installs: 0,
    programs: 0,
  };
  for (const { install, program, command } of commands) {
    if (install !== undefined) {
      const took = timed("npm", ["install", "--ignore-scripts", ...packedOf(install)], options);
      seconds[seconds.firstProgram === 0 ? "firstInstall" : "installs"] += took;
    } else if (program === "first.mjs") {
      seconds.firstProgram = timed(process.execPath, [program], options, promisedBy(program));
    } else seconds.programs += program === undefined ? await runCommand(command) : await runProgram(program);
  }
  return seconds;

  function runCommand(command) {
    const args = command.split(" ");
    if (args[1] !== "serve") return timed("npx", ["--yes", ...args], options);
    const ports = ["http", "grpc", "metrics"].flatMap((name) => [`--${name}-port`, "0"]);
    const cli = join("node_modules", "@tritonjs", "cli", "dist", "main.js");
    return timedServer(
      process.execPath,
      [cli, ...args.slice(1), ...ports],
      options,
      "Started Metrics Service",
    );
  }

  function runProgram(name) {
    const promised = promisedBy(name);
    if (name === "client.mjs") return 0; // It runs beside its server.
    if (!/localhost:\d/.test(promised)) return timed(process.execPath, [name], options, promised);
    const text = promised
      .trimEnd()
      .split("\n")
      .at(-1)
      .replace(/\d+.*$/s, "");
    return timedServer(process.execPath, [name], options, text, (output) => {
      if (name !== "serve.mjs") return;
      const [address] = /(?<=gRPC +)localhost:\d+/.exec(output);
      writeFileSync(
        join(project, "client.mjs"),
        programs.get("client.mjs").replace("localhost:8001", address),
      );
      timed(process.execPath, ["client.mjs"], options, promisedBy("client.mjs"));
    });
  }
}

const rounds = [];
for (let round = 0; round < ROUNDS; round++) {
  rounds.push(await goThroughPage(join(folder, `my-models-${round}`), join(folder, `cache-${round}`)));
}
rmSync(folder, { recursive: true });

const reading = (words / WORDS_PER_MINUTE) * 60;
const of = (figure) => short(median(rounds.map(figure)));
const first = ({ firstInstall, firstProgram }) => firstInstall + firstProgram;
report("first-answer", {
  rows: {
    "step 1: npm init, npm install": { seconds: of(({ firstInstall }) => firstInstall) },
    "step 1: node first.mjs": { seconds: of(({ firstProgram }) => firstProgram) },
    "step 1": { seconds: of(first) },
    "steps 2 to 10: npm install": { seconds: of(({ installs }) => installs) },
    "steps 2 to 10: programs": { seconds: of(({ programs }) => programs) },
    [`reading ${words.toLocaleString("en")} words, ${WORDS_PER_MINUTE} a minute`]: {
      seconds: short(reading),
    },
    "all steps": { seconds: of((round) => first(round) + round.installs + round.programs + reading) },
  },
  note: `Median of ${ROUNDS} rounds, each in an empty folder with an empty npm cache. Install scripts did not run. The words are all of the page, with its code. Step 5 ran with fastify.`,
});
