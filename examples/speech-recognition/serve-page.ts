/* A page that writes down what somebody says: `npm run page`. */
import { openPageServer } from "./page-server.js";

const { url, close } = await openPageServer(8080);
console.log(`open ${url} in a browser; Ctrl-C ends`);
await new Promise((resolve) => process.once("SIGINT", resolve));
await close();
