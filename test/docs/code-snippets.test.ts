import { testSnippets } from "./snippet-runs.js";

testSnippets("the code in the README", (path) => path.startsWith("README.md"));
