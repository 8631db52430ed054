/*
 * `npm run build`: installs, then compiles everything, or a project and its references: `npm run build --
 * packages/http`.
 */
import { install } from "./install.mjs";
import { build } from "./run.mjs";

install();
build(process.argv[2]);
