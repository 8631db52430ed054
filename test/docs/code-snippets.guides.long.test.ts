import { testSnippets } from "./snippet-runs.js";

testSnippets("the code in the guides", (path) => !path.startsWith("README.md"));
