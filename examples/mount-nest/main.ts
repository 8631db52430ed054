import "reflect-metadata";
import type { AddressInfo } from "node:net";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import { IrisModule } from "./iris.module.js";
import { IrisService } from "./iris.service.js";

/*
 * A Nest application with a model: a route of its own calls it in process, and the v2 routes open it to clients of the
 * protocol.
 *
 *   PORT=3000 npm start
 */

const app = await NestFactory.create<NestExpressApplication>(IrisModule, { logger: ["error", "warn"] });
// SIGTERM and SIGINT run the shutdown hooks, which drain the models.
app.enableShutdownHooks();

// The v2 routes read request bodies themselves: Nest adds its body parsers later, in `listen`.
const { triton } = app.get(IrisService);
app.use("/inference", toNodeListener(fetchHandler(triton, { prefix: "/inference" })));

const server = await app.listen(Number(process.env.PORT ?? 3000));
console.log(`listening at http://localhost:${(server.address() as AddressInfo).port}`);
