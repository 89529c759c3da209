/**
 * Tells a model what a language server says of a file that it has just written or edited, with the result of the edit:
 * type errors come a moment after they are made, and not with the next test run.
 *
 * Any language server by its command; TypeScript 7 has its own. The server runs on this machine, by the
 * `ChildProcessSpawner` of the platform, and starts with the first edit. `root` is the folder that the backend has as its
 * root. A server that is late or gone costs an edit its diagnostics, and nothing else.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { DeepAgent } from "effect-deepagents/deep"
 * import { LspDiagnostics } from "effect-deepagents/workspace"
 *
 * const coder = DeepAgent.make({ name: "coder", prompt: "You code.", middleware: [LspDiagnostics.make()] })
 *
 * const server = LspDiagnostics.layer({ root: "/work/project", ...LspDiagnostics.typescript }).pipe(
 *   Layer.provide(NodeServices.layer)
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Backend } from "../core/Backend.ts"
import * as Content from "../core/Content.ts"
import { isObject } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ToolOutput } from "../core/ToolOutput.ts"
import { encodePart } from "../support/text/percent.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as Client from "./internal/lsp/client.ts"

/**
 * A language server: `command` and its arguments, `languages` by the extension of files, `root` the absolute path of the
 * folder on this machine.
 */
export interface Options {
  readonly root: string
  readonly command: readonly [program: string, ...args: ReadonlyArray<string>]
  readonly languages: { readonly [extension: string]: string }
}

/** The server of TypeScript 7, for TypeScript and JavaScript: `tsc` must be found by `PATH`. */
export const typescript: Pick<Options, "command" | "languages"> = {
  command: ["tsc", "--lsp", "--stdio"],
  languages: {
    ts: "typescript",
    mts: "typescript",
    cts: "typescript",
    tsx: "typescriptreact",
    js: "javascript",
    mjs: "javascript",
    cjs: "javascript",
    jsx: "javascriptreact"
  }
}

/** A problem in a file; line and column are counted from 1. */
export interface Problem {
  readonly line: number
  readonly column: number
  readonly severity: "error" | "warning" | "hint"
  readonly message: string
}

/** Says what is wrong with a file whose text is this now; `undefined` where nobody can say. */
export class LanguageServer extends Context.Service<
  LanguageServer,
  { readonly diagnose: (path: string, text: string) => Effect.Effect<ReadonlyArray<Problem> | undefined> }
>()("effect-deepagents/LanguageServer") {}

const severityOf = (severity = 1): Problem["severity"] =>
  severity === 1 ? "error" : severity === 2 ? "warning" : "hint"

const problemOf = ({ code, message, range, severity }: Client.Diagnostic): Problem => ({
  line: range.start.line + 1,
  column: range.start.character + 1,
  severity: severityOf(severity),
  message: cut(oneLine(`${code === undefined ? "" : `${code}: `}${message}`), 500)
})

const uriOf = (root: string, path: string): string =>
  `file://${[...root.split("/"), ...path.split("/")]
    .filter((part) => part !== "")
    .map((part) => `/${encodePart(part)}`)
    .join("")}`

/** Starts the server; what it writes to stderr is not read. */
const start = Effect.fnUntraced(function* ({ command: [program, ...args], root }: Options) {
  const spawner = yield* ChildProcessSpawner
  const handle = yield* spawner.spawn(ChildProcess.make(program, args, { cwd: root, stderr: "ignore" }))
  const outgoing = yield* Queue.unbounded<Uint8Array>()
  yield* Stream.fromQueue(outgoing).pipe(Stream.run(handle.stdin), Effect.ignore, Effect.forkScoped)
  return yield* Client.make(
    { incoming: handle.stdout, send: (bytes) => Effect.asVoid(Queue.offer(outgoing, bytes)) },
    uriOf(root, "")
  )
})

/** Makes the layer of a server. It is started when it is first asked, and ended with the layer. */
export const layer = (options: Options): Layer.Layer<LanguageServer, never, ChildProcessSpawner> =>
  Layer.effect(
    LanguageServer,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const spawner = yield* ChildProcessSpawner
      const starting = yield* Effect.cached(
        start(options).pipe(
          Effect.provideService(ChildProcessSpawner, spawner),
          Effect.provideService(Scope.Scope, scope),
          Effect.tapError((error) => Effect.logWarning(`The language server could not be started: ${error.message}`)),
          Effect.orElseSucceed(() => undefined),
          // Whoever asked first may go away meanwhile, and the server is for all.
          Effect.forkIn(scope)
        )
      )
      const client = Effect.flatMap(starting, Fiber.join).pipe(
        // One that takes longer to begin is there for the edits after it.
        Effect.timeoutOrElse({ duration: Client.patience, orElse: () => Effect.succeed(undefined) })
      )
      return {
        diagnose: (path, text) => {
          const extension = path.slice(path.lastIndexOf(".") + 1).toLowerCase()
          const language = Object.hasOwn(options.languages, extension) ? options.languages[extension] : undefined
          return language === undefined
            ? Effect.succeed(undefined)
            : Effect.flatMap(client, (known) =>
                known === undefined
                  ? Effect.succeed(undefined)
                  : Effect.map(known.diagnose(uriOf(options.root, path), language, text), (found) =>
                      found?.map(problemOf)
                    )
              )
        }
      }
    })
  )

/** The name of this middleware. */
export const name = "LspDiagnostics"

/** The most problems that are told of a file, and the largest file that is looked at. */
const maxProblems = 20
const maxBytes = 1_000_000

/** The files that a result says it changed. */
const changed = ({ details }: ToolOutput): ReadonlyArray<string> => {
  if (!isObject(details)) return []
  const { files, path } = details
  if (typeof path === "string") return [path]
  return Array.isArray(files)
    ? files.flatMap((change) => (isObject(change) && typeof change["path"] === "string" ? [change["path"]] : []))
    : []
}

const told = (path: string, problems: ReadonlyArray<Problem>): string => {
  const shown = problems.filter(({ severity }) => severity !== "hint")
  if (shown.length === 0) return ""
  const rows = shown.slice(0, maxProblems).map((one) => `${one.line}:${one.column} ${one.severity} ${one.message}`)
  const more = shown.length > maxProblems ? [`and ${shown.length - maxProblems} more`] : []
  return [`[the language server says of ${oneLine(path)}:]`, ...rows, ...more].join("\n")
}

/** Adds the problems of a file to the result of the call that wrote it: errors and warnings, at most 20. */
export const make = (): Middleware.Middleware<never, Backend | LanguageServer> => {
  const look = Effect.fnUntraced(function* (path: string) {
    const backend = yield* Backend
    const server = yield* LanguageServer
    const [file] = yield* backend.download([path])
    if (file?.ok !== true || file.value.length > maxBytes) return ""
    const problems = yield* server.diagnose(path, new TextDecoder().decode(file.value))
    return problems === undefined ? "" : told(path, problems)
  })
  return Middleware.make<never, Backend | LanguageServer>({
    name,
    inherit: true,
    wrapToolCall: (call, next) =>
      call.annotations.editsFiles === true
        ? Effect.flatMap(next(call), (output) =>
            output.isError
              ? Effect.succeed(output)
              : Effect.map(Effect.forEach(changed(output).slice(0, 10), look), (all) => {
                  const text = all.filter((one) => one !== "").join("\n")
                  return text === "" ? output : { ...output, content: [...output.content, Content.text(`\n${text}`)] }
                })
          )
        : next(call)
  })
}
