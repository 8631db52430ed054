import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../clock.mjs";
import { CHANGING, CHANGING_CONFIG, changingCode, changingFiles, writeFiles } from "../repository/models.mjs";

/* Changes of the repository that is polled. Only the removal of a model may fail requests. */

const folderOf = ({ servers }) => join(servers.serve.repository, CHANGING);

/** Longer than two polls. */
const TWO_POLLS_MS = 2500;

async function untilVersionServes({ clients }, version) {
  const isReady = () => clients.serve.http.isModelReady(CHANGING, { modelVersion: version });
  await until(isReady, `version ${version} of '${CHANGING}' to be served`);
}

const badConfiguration = {
  name: "broken configuration",
  needs: ["repository"],
  async run(context) {
    const path = join(folderOf(context), "config.pbtxt");
    const event = context.log.begin(this.name, { server: "serve", model: CHANGING });
    const broken = ["max_batch_size: many", `${CHANGING_CONFIG}\ninput [`, 'backend: "no_such_backend"'];
    writeFileSync(path, context.random.pick(broken));
    await sleep(context.random.between(500, TWO_POLLS_MS));
    writeFileSync(path, CHANGING_CONFIG);
    await untilVersionServes(context, context.state.version);
    context.log.end(event);
  },
};

/** Puts a version into the repository whose file is complete only after a while. */
async function addVersionInParts(context, write) {
  const { state } = context;
  const version = state.version + 1;
  const folder = join(folderOf(context), String(version));
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "model.js");
  await write(path, changingCode(version));
  writeFileSync(`${path}.new`, changingCode(version));
  renameSync(`${path}.new`, path);
  await untilVersionServes(context, version);
  rmSync(join(folderOf(context), String(state.version)), { recursive: true });
  state.version = version;
}

const halfWritten = {
  name: "half written version",
  needs: ["repository"],
  async run(context) {
    const event = context.log.begin(this.name, { server: "serve", model: CHANGING });
    await addVersionInParts(context, async (path, code) => {
      writeFileSync(path, code.slice(0, context.random.between(code.length / 4, code.length - 20)));
      await sleep(context.random.between(300, TWO_POLLS_MS));
    });
    context.log.end(event);
  },
};

const diskFull = {
  name: "disk of the repository full",
  needs: ["repository", "disk"],
  async run(context) {
    const { folder, log, random } = context;
    const ballast = join(folder, "ballast");
    const event = log.begin(this.name, { server: "serve", model: CHANGING });
    try {
      await addVersionInParts(context, async (path, code) => {
        fill(ballast, folder);
        writeUntilFull(path, code);
        await sleep(random.between(500, TWO_POLLS_MS));
        rmSync(ballast);
      });
    } finally {
      rmSync(ballast, { force: true });
    }
    log.end(event);
  },
};

/** Fills the disk of a folder with a file, but for one block. The server writes its traces to that disk meanwhile. */
function fill(ballast, folder) {
  const { bavail, bsize } = statfsSync(folder);
  writeUntilFull(ballast, Buffer.alloc(Math.max(0, bavail - 1) * bsize));
}

function writeUntilFull(path, data) {
  try {
    writeFileSync(path, data);
  } catch (error) {
    if (error.code !== "ENOSPC") throw error;
  }
}

const modelRemoved = {
  name: "model removed from the repository",
  needs: ["repository"],
  async run(context) {
    const { clients, log, random, servers, state } = context;
    const event = log.begin(this.name, { server: "serve", model: CHANGING });
    rmSync(folderOf(context), { recursive: true });
    await until(
      async () => !(await clients.serve.http.isModelReady(CHANGING)),
      "the removed model to be unloaded",
    );
    await sleep(random.between(0, 500));
    state.version++;
    writeFiles(servers.serve.repository, changingFiles(state.version));
    await untilVersionServes(context, state.version);
    log.end(event);
  },
};

/** The whole directory is away, as with a network disk. No instance can restart meanwhile. */
const repositoryAway = {
  name: "repository directory away",
  needs: ["repository", "instances of serve"],
  async run({ servers, log, random }) {
    const { repository } = servers.serve;
    const event = log.begin(this.name, { server: "serve" });
    renameSync(repository, `${repository}.away`);
    await sleep(random.between(500, TWO_POLLS_MS));
    renameSync(`${repository}.away`, repository);
    log.end(event);
  },
};

export const repositoryEvents = [badConfiguration, halfWritten, diskFull, modelRemoved, repositoryAway];
