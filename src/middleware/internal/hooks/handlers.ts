/** Handlers of hooks: commands, HTTP and modules. All read the event as JSON, and are bounded in output. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../../../core/Json.ts"
import { readBeginning } from "../../../support/http/body.ts"
import { describe } from "../../../support/http/describe.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { blocked, readAnswer } from "./answers.ts"
import { events, type Handler, type HookEvent, HookFailed } from "./model.ts"

/** The most bytes of an answer. More is read and dropped. */
const mostBytes = 256 * 1024

const eventOf = (input: JsonObject): HookEvent =>
  events.find((event) => event === input["hook_event_name"]) ?? "Notification"

/** Collects the beginning of a stream, for reading at any time. */
const collect = () => {
  let text = ""
  let room = mostBytes
  const decoder = new TextDecoder()
  return {
    add: (bytes: Uint8Array): void => {
      if (room <= 0) return
      text += decoder.decode(bytes.subarray(0, room), { stream: true })
      room -= bytes.length
    },
    text: () => text,
    isWhole: () => room >= 0
  }
}

/** The surroundings of a command. */
export interface Place {
  /** The folder in which it runs. Default: the folder of the process. */
  readonly cwd?: string | undefined
  /** Further variables for the process. Default: none. */
  readonly env?: { readonly [name: string]: string } | undefined
  /**
   * Asks a module of code, for hooks of the type `module`: gives its answer as a command writes it, or fails with a
   * problem. Default: settings can't name modules.
   */
  readonly ask?: ((path: string, input: JsonObject) => Effect.Effect<string, string>) | undefined
}

/** Asks a module of code by a function of the program. */
export const module = (path: string, ask: NonNullable<Place["ask"]>): Handler => ({
  name: path,
  run: (input) =>
    ask(path, input).pipe(
      Effect.flatMap((text) => readAnswer(eventOf(input), text.slice(0, mostBytes), text.length <= mostBytes)),
      Effect.mapError((problem) => new HookFailed({ hook: path, problem }))
    )
})

/** Runs a command of the shell. Its process group is killed when it has exited, or is late. */
export const command = (text: string, place: Place = {}): Handler<ChildProcessSpawner> => ({
  name: text,
  run: Effect.fnUntraced(
    function* (input) {
      const spawner = yield* ChildProcessSpawner
      const process = yield* spawner.spawn(
        ChildProcess.make("sh", ["-c", text], {
          cwd: place.cwd,
          env: { ...place.env },
          extendEnv: true,
          killSignal: "SIGKILL",
          stdin: { stream: Stream.make(new TextEncoder().encode(`${JSON.stringify(input)}\n`)), endOnDone: true }
        })
      )
      const [out, err] = [collect(), collect()]
      const reading = yield* Effect.forkScoped(
        Effect.all(
          [
            Stream.runForEach(process.stdout, (bytes) => Effect.sync(() => out.add(bytes))),
            Stream.runForEach(process.stderr, (bytes) => Effect.sync(() => err.add(bytes)))
          ],
          { concurrency: 2 }
        )
      )
      const code = yield* process.exitCode
      // Processes that it left behind would hold the pipes open. All that it wrote is in them by now.
      yield* Effect.ignore(process.kill({ killSignal: "SIGKILL" }))
      yield* Effect.timeoutOption(Fiber.await(reading), "10 seconds")
      if (code === 2) return blocked(err.text())
      if (code !== 0) {
        return yield* new HookFailed({ hook: text, problem: `exit code ${code}: ${cut(oneLine(err.text()), 300)}` })
      }
      return yield* Effect.mapError(
        readAnswer(eventOf(input), out.text(), out.isWhole()),
        (problem) => new HookFailed({ hook: text, problem })
      )
    },
    Effect.scoped,
    Effect.catchTag("PlatformError", ({ message }) => new HookFailed({ hook: text, problem: oneLine(message) }))
  )
})

/** Posts the event to an address, and reads the answer as JSON. */
export const http = (
  url: string,
  headers: { readonly [name: string]: string } = {}
): Handler<HttpClient.HttpClient> => ({
  name: url,
  run: Effect.fnUntraced(
    function* (input) {
      const request = HttpClientRequest.post(url).pipe(
        HttpClientRequest.setHeaders({ ...headers }),
        HttpClientRequest.bodyText(JSON.stringify(input), "application/json")
      )
      const response = yield* HttpClient.execute(request)
      const { bytes, isWhole } = yield* readBeginning(response, mostBytes)
      if (response.status < 200 || response.status > 299) {
        return yield* new HookFailed({ hook: url, problem: `it answered with status ${response.status}` })
      }
      return yield* Effect.mapError(
        readAnswer(eventOf(input), new TextDecoder().decode(bytes), isWhole),
        (problem) => new HookFailed({ hook: url, problem })
      )
    },
    Effect.scoped,
    Effect.catchTag("HttpClientError", (error) => new HookFailed({ hook: url, problem: oneLine(describe(error)) }))
  )
})
