/** PDFs in threads of Node, each with bounds on time and memory. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import * as threads from "../../../support/effect/threads.ts"
import type { Answer, Ask } from "./pdfMessages.ts"
import { fail, failureOf, type Open } from "./pdfOpened.ts"

interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly maxMemory?: number | undefined
}

const unavailable = 'the package "unpdf" could not be loaded; install it: npm install unpdf'

const noProgram =
  "the thread that reads PDFs can't start from a bundle; leave effect-deepagents outside of the bundle (external)"

/** Apart from `new Worker`: a bundler that follows workers would want packages that may not be installed. */
const program = () => new URL("./pdfWorker.ts", import.meta.url)

const megabyte = 1_000_000

/** Bytes that a small document may unpack to; a larger one to ten times its size. */
const always = 64 * megabyte

/** The heap that any document may take, in megabytes; a larger one ten times its size. */
const usual = 128

const tooMuch = (bytes: number): DocumentError =>
  fail("TooLarge", `it takes more than ${Math.round(bytes / megabyte)} MB of memory to read`)

/** Opens documents in threads. */
export const opener = ({ maxMemory = 512, timeout = "20 seconds" }: Options): Open => {
  const patience = Duration.fromInputUnsafe(timeout)
  const troubled =
    (heap: number) =>
    ({ isMemory, message, missing }: threads.Trouble): DocumentError =>
      isMemory
        ? tooMuch(heap * megabyte)
        : missing === "unpdf"
          ? fail("Unavailable", unavailable)
          : missing?.includes("pdf") === true
            ? fail("Unavailable", noProgram)
            : fail("Damaged", message)
  return (bytes, password) =>
    Effect.gen(function* () {
      const heap = Math.min(maxMemory, Math.max(usual, Math.ceil((10 * bytes.length) / megabyte)))
      const most = Math.min(maxMemory * megabyte, Math.max(always, 10 * bytes.length))
      const worker = yield* Effect.acquireRelease(
        Effect.mapError(threads.start(program, heap), troubled(heap)),
        threads.end
      )
      const asked = (question: Ask, what: string) =>
        threads.ask<Answer>(worker, question).pipe(
          Effect.mapError(troubled(heap)),
          Effect.raceFirst(
            Effect.flatMap(threads.isOver(worker, { heap: heap * megabyte, external: most }), (over) =>
              Effect.fail(tooMuch(over === "heap" ? heap * megabyte : most))
            )
          ),
          Effect.timeoutOrElse({
            duration: patience,
            orElse: () => Effect.fail(fail("TimedOut", `${what} took longer than ${Duration.format(patience)}`))
          }),
          Effect.flatMap((answer) =>
            "problem" in answer
              ? Effect.fail(
                  answer.isMissing ? fail("Unavailable", unavailable) : failureOf(answer.name, answer.problem)
                )
              : Effect.succeed(answer)
          )
        )
      const opened = yield* asked({ id: 0, bytes, password }, "its beginning")
      return {
        count: "count" in opened ? opened.count : 0,
        text: (page) =>
          Effect.map(asked({ id: page, page }, `page ${page}`), (answer) => ("text" in answer ? answer.text : ""))
      }
    })
}
