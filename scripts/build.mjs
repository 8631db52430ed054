/* `npm run build`: compiles everything, or a project and its references: `npm run build -- packages/http`. */
import { build } from "./run.mjs";

build(process.argv[2]);
