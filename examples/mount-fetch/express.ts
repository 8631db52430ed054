import type { AddressInfo } from "node:net";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import express from "express";
import { createTriton } from "./model.js";

/*
 * The v2 routes in an Express application. They read request bodies themselves, so mount them before body parsers.
 *
 *   PORT=3000 node dist/express.js
 */

const triton = createTriton();
const app = express();
app.use("/inference", toNodeListener(fetchHandler(triton, { prefix: "/inference" })));
app.use(express.json());
app.get("/", (_request, response) => {
  response.send("hello");
});

const server = app.listen(Number(process.env.PORT ?? 3000), () => {
  console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await triton.close();
    server.close();
  });
}
