import "reflect-metadata";
import { type ArgumentsHost, Catch, Controller, Get, HttpException, Module, Param } from "@nestjs/common";
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from "@nestjs/core";
import { Triton, TritonError } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { answersOf, bindRoot, rootOf, STATUSES } from "./support/root-model.js";

/** The exception filter of docs/http.md. */
class TritonErrorFilter extends BaseExceptionFilter {
  override catch(thrown: unknown, host: ArgumentsHost): void {
    super.catch(TritonError.is(thrown) && thrown.expose ? answered(thrown) : thrown, host);
  }
}
Catch()(TritonErrorFilter);

function answered(error: TritonError): HttpException {
  const { statusCode, code, message } = error;
  return new HttpException({ statusCode, code, message }, statusCode, { cause: error });
}

it("an exception filter gives errors of a model their status and message in Nest", async () => {
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

  const app = await NestFactory.create(AppModule, { logger: false });
  onTestFinished(() => app.close());
  app.useGlobalFilters(new TritonErrorFilter(app.get(HttpAdapterHost).httpAdapter));
  await app.listen(0, "localhost");
  const answers = await answersOf((await app.getUrl()).replace("[::1]", "localhost"));
  expect(answers.map(({ status }) => status)).toEqual(STATUSES);
  expect(answers.slice(0, 3).map(({ text }) => JSON.parse(text))).toEqual([
    { root: 2 },
    { statusCode: 400, code: "INVALID_ARG", message: expect.any(String) },
    { statusCode: 404, code: "NOT_FOUND", message: "there is no root of 0" },
  ]);
});
