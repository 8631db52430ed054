import { createClient } from "@tritonjs/client/http";
import type { Models } from "../page-server.js";

/* The script of the page, which runs in the browser. */

const model = createClient<Models>(location.origin).model("spread");
const form = document.querySelector("form")!;
const status = document.querySelector("[role=status]")!;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = String(new FormData(form).get("values"));
  try {
    const { mean, deviation } = await model.inferSample({ values: text.trim().split(/\s+/).map(Number) });
    status.textContent = `mean ${mean.data[0]}, deviation ${deviation.data[0]}`;
  } catch (error) {
    status.textContent = (error as Error).message;
  }
});
