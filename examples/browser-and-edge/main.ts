import edgeWorker from "./edge-worker.js";
import { listen, openPageServer } from "./page-server.js";

/*
 * A page in a browser and a worker at the edge call a model. `npm start -- --once` calls the worker and ends.
 */

const once = process.argv.includes("--once");
const page = await openPageServer(once ? 0 : 8080);
// A platform runs the worker. Here, Node does.
const worker = await listen(once ? 0 : 8081, async (request) =>
  edgeWorker.fetch(request, { MODELS_URL: page.url }),
);

if (once) {
  const script = await fetch(`${page.url}/page.js`);
  console.log(`the script of the page has ${Math.round((await script.arrayBuffer()).byteLength / 1000)} kB`);
  for (const query of ["?values=2,4,4,4,5,5,7,9", "?values=two"]) {
    const answer = await fetch(`${worker.url}/${query}`);
    console.log(`${query}: ${answer.status} ${await answer.text()}`);
  }
} else {
  console.log(`open ${page.url} in a browser, or ${worker.url}/?values=1,2,3 for the worker; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
worker.close();
await page.close();
