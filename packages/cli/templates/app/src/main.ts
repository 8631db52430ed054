import type { AddressInfo } from "node:net";
import { Models } from "./models.js";
import { createApp } from "./server.js";

const models = new Models();
await models.ready();
const server = createApp(models);
server.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    await models.close();
    server.close();
  });
}
