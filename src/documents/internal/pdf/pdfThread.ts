/** Reads PDFs in threads of Node with limits on time and memory. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { DocumentError } from "../../../core/Document.ts"
import * as threads from "../../../support/effect/threads.ts"
import type { Answer, Ask } from "./pdfMessages.ts"
import { fail, failureOf, type OpenFile } from "./pdfOpened.ts"

interface Options {
  readonly timeout?: Duration.Input | undefined
  readonly maxMemory?: number | undefined
}

const unavailable = 'the package "unpdf" could not be loaded; install it: npm install unpdf'

const noProgram =
  "the thread that reads PDFs can't start from a bundle; leave effect-deepagents outside of the bundle (external)"

/** Kept apart from `new Worker`, since bundlers that follow workers would require optional packages. */
const program = () => new URL("./pdfWorker.ts", import.meta.url)

const megabyte = 1_000_000

/** Minimum limit on memory outside of the heap, in bytes. A large document gets ten times its size. */
const minExternal = 64 * megabyte

/** Minimum limit on the heap, in megabytes. A large document gets ten times its size. */
const minHeap = 128

const failTooLarge = (bytes: number): DocumentError =>
  fail("TooLarge", `it takes more than ${Math.round(bytes / megabyte)} MB of memory to read`)

/** Makes a function that opens each document in its own thread. */
export const makeOpener = ({ maxMemory = 512, timeout = "20 seconds" }: Options): OpenFile => {
  const pageTimeout = Duration.fromInputUnsafe(timeout)
  const describeTrouble =
    (heap: number) =>
    ({ isMemory, message, missing }: threads.Trouble): DocumentError =>
      isMemory
        ? failTooLarge(heap * megabyte)
        : missing === "unpdf"
          ? fail("Unavailable", unavailable)
          : missing?.includes("pdf") === true
            ? fail("Unavailable", noProgram)
            : fail("Damaged", message)
  return (bytes, password) =>
    Effect.gen(function* () {
      const heap = Math.min(maxMemory, Math.max(minHeap, Math.ceil((10 * bytes.length) / megabyte)))
      const external = Math.min(maxMemory * megabyte, Math.max(minExternal, 10 * bytes.length))
      const worker = yield* Effect.acquireRelease(
        Effect.mapError(threads.start(program, heap), describeTrouble(heap)),
        threads.end
      )
      const ask = (question: Ask, what: string) =>
        threads.ask<Answer>(worker, question).pipe(
          Effect.mapError(describeTrouble(heap)),
          Effect.raceFirst(
            Effect.flatMap(threads.isOver(worker, { heap: heap * megabyte, external }), (over) =>
              Effect.fail(failTooLarge(over === "heap" ? heap * megabyte : external))
            )
          ),
          Effect.timeoutOrElse({
            duration: pageTimeout,
            orElse: () => Effect.fail(fail("TimedOut", `${what} took longer than ${Duration.format(pageTimeout)}`))
          }),
          Effect.flatMap((answer) =>
            "problem" in answer
              ? Effect.fail(
                  answer.isMissing ? fail("Unavailable", unavailable) : failureOf(answer.name, answer.problem)
                )
              : Effect.succeed(answer)
          )
        )
      const opened = yield* ask({ id: 0, bytes, password }, "its beginning")
      return {
        count: "count" in opened ? opened.count : 0,
        text: (page) =>
          Effect.map(ask({ id: page, page }, `page ${page}`), (answer) => ("text" in answer ? answer.text : ""))
      }
    })
}
