import "reflect-metadata";
import {
  type ArgumentsHost,
  Catch,
  Controller,
  Get,
  HttpException,
  Logger,
  Module,
  Param,
} from "@nestjs/common";
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from "@nestjs/core";
import { Triton, TritonError } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { answersOf, bindRoot, rootOf, STATUSES } from "./support/root-model.js";

/** The exception filter of docs/http.md. */
class TritonErrorFilter extends BaseExceptionFilter {
  readonly #logger = new Logger("Triton");

  override catch(thrown: unknown, host: ArgumentsHost): void {
    super.catch(TritonError.is(thrown) ? this.#answered(thrown) : thrown, host);
  }

  #answered(error: TritonError): HttpException {
    const { statusCode, code, expose } = error;
    if (!expose) this.#logger.error(error);
    const message = expose ? error.message : "Internal Server Error";
    return new HttpException({ statusCode, code, message }, statusCode);
  }
}
Catch()(TritonErrorFilter);

it("errors of a model have their status and message in Nest, and their code with an exception filter", async () => {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  const handle = bindRoot(triton);

  class RootController {
    root(numbers: string) {
      return rootOf(handle, numbers);
    }
  }
  // The decorators of Nest, applied by hand: this file is compiled without the option that they need.
  Controller("root")(RootController);
  Param("x")(RootController.prototype, "root", 0);
  Get(":x")(
    RootController.prototype,
    "root",
    Object.getOwnPropertyDescriptor(RootController.prototype, "root")!,
  );
  class AppModule {}
  Module({ controllers: [RootController] })(AppModule);

  /** Starts the application. @returns its answers */
  const served = async (withFilter: boolean) => {
    const app = await NestFactory.create(AppModule, { logger: false });
    onTestFinished(() => app.close());
    if (withFilter) app.useGlobalFilters(new TritonErrorFilter(app.get(HttpAdapterHost).httpAdapter));
    await app.listen(0, "localhost");
    return answersOf((await app.getUrl()).replace("[::1]", "localhost"));
  };

  const plain = await served(false);
  expect(plain.map(({ status }) => status)).toEqual(STATUSES);
  expect(JSON.parse(plain[2]!.text)).toEqual({ statusCode: 404, message: "there is no root of 0" });
  const answers = await served(true);
  expect(answers.map(({ status }) => status)).toEqual(STATUSES);
  expect(answers.slice(0, 3).map(({ text }) => JSON.parse(text))).toEqual([
    { root: 2 },
    { statusCode: 400, code: "INVALID_ARG", message: expect.any(String) },
    { statusCode: 404, code: "NOT_FOUND", message: "there is no root of 0" },
  ]);
  expect(answers[3]!.text).not.toContain("the callback is broken");
});
