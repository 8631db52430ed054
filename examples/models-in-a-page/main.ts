import { gzipSync } from "node:zlib";
import { openPageServer } from "./page-server.js";

/*
 * A page that runs a model itself, in a web worker, or asks the server. `npm start -- --once` lists what the page loads,
 * and ends.
 */

const once = process.argv.includes("--once");
const server = await openPageServer(once ? 0 : 8080);

if (once) {
  for (const [path, [, content]] of server.files)
    console.log(`${path}: ${Math.ceil(gzipSync(content).length / 1000)} kB with gzip`);
  await server.close();
} else {
  console.log(`open ${server.url} in a browser; Ctrl-C ends`);
  process.once("SIGINT", () => void server.close());
}
