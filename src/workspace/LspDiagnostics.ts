/**
 * Adds the diagnostics of a language server to the result of an edit, so that the model sees type errors at once.
 *
 * It runs any language server by its command; TypeScript 7 has one. The server runs on this machine by the
 * `ChildProcessSpawner` of the platform, and starts with the first edit. `root` is the root folder of the backend. A slow
 * or failed server only costs the diagnostics.
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
import { isObject, type JsonObject } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ToolOutput } from "../core/ToolOutput.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { encodePart } from "../support/text/percent.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as Client from "./internal/lsp/client.ts"
import * as shapes from "./internal/shapes.ts"

/** A language server. */
export interface Options {
  /** Absolute path of the root folder on this machine. */
  readonly root: string
  /** Program and arguments. */
  readonly command: readonly [program: string, ...args: ReadonlyArray<string>]
  /** Languages of the protocol by file extension. */
  readonly languages: { readonly [extension: string]: string }
  /** Folder in which the server is started. Default: `root`. */
  readonly cwd?: string | undefined
  /** Variables of the server. Default: the variables of this process. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** Settings that the server asks for, by their section. Default: none. */
  readonly settings?: { readonly [section: string]: JsonObject } | undefined
}

/**
 * The server of TypeScript 7, for TypeScript and JavaScript. `PATH` must contain `tsc`. Its settings keep it from
 * installing types of the packages that a project names.
 */
export const typescript: Pick<Options, "command" | "languages" | "settings"> = {
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
  },
  settings: { typescript: { disableAutomaticTypeAcquisition: true } }
}

/** A problem in a file. Line and column start at 1. */
interface Problem {
  readonly line: number
  readonly column: number
  readonly severity: "error" | "warning" | "hint"
  readonly message: string
}

/** Finds the problems of a text. `undefined` if the server has no answer. */
export class LanguageServer extends Context.Service<
  LanguageServer,
  { readonly diagnose: (path: string, text: string) => Effect.Effect<ReadonlyArray<Problem> | undefined> }
>()("effect-deepagents/LanguageServer") {}

const severityOf = (severity = 1): Problem["severity"] =>
  severity === 1 ? "error" : severity === 2 ? "warning" : "hint"

const toProblem = ({ code, message, range, severity }: Client.Diagnostic): Problem => ({
  line: range.start.line + 1,
  column: range.start.character + 1,
  severity: severityOf(severity),
  message: cut(oneLine(`${code === undefined ? "" : `${code}: `}${message}`), 500)
})

/** Paths are from the root of the server, or the machine's own. */
const uriOf = (root: string, path: string): string =>
  `file://${[...(path.startsWith(`${root}/`) ? [] : root.split("/")), ...path.split("/")]
    .filter((part) => part !== "")
    .map((part) => `/${encodePart(part)}`)
    .join("")}`

/** Starts the server. */
const startServer = Effect.fnUntraced(function* ({ command: [program, ...args], cwd, env, root, settings }: Options) {
  const spawner = yield* ChildProcessSpawner
  const own = env === undefined ? {} : { env: { ...env }, extendEnv: false }
  const handle = yield* spawner.spawn(ChildProcess.make(program, args, { cwd: cwd ?? root, stderr: "ignore", ...own }))
  const outgoing = yield* Queue.unbounded<Uint8Array>()
  yield* Stream.fromQueue(outgoing).pipe(Stream.run(handle.stdin), Effect.ignore, Effect.forkScoped)
  return yield* Client.make(
    { incoming: handle.stdout, send: (bytes) => Effect.asVoid(Queue.offer(outgoing, bytes)) },
    uriOf(root, ""),
    settings
  )
})

const refuseLayer = makeLayerCheck("LspDiagnostics.layer", shapes.lspDiagnosticsLayer)

/** Starts the server with the first request, and ends it with the layer. */
export const layer = (options: Options): Layer.Layer<LanguageServer, never, ChildProcessSpawner> =>
  refuseLayer(options) ??
  Layer.effect(
    LanguageServer,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const spawner = yield* ChildProcessSpawner
      const starting = yield* Effect.cached(
        startServer(options).pipe(
          Effect.provideService(ChildProcessSpawner, spawner),
          Effect.provideService(Scope.Scope, scope),
          Effect.tapError((error) => Effect.logWarning(`The language server could not be started: ${error.message}`)),
          Effect.orElseSucceed(() => undefined),
          // The start continues if the first caller is interrupted.
          Effect.forkIn(scope)
        )
      )
      const client = Effect.flatMap(starting, Fiber.join).pipe(
        // A slow server is ready for later edits.
        Effect.timeoutOrElse({ duration: Client.requestTimeout, orElse: () => Effect.succeed(undefined) })
      )
      return {
        diagnose: (path, text) => {
          const extension = path.slice(path.lastIndexOf(".") + 1).toLowerCase()
          const language = Object.hasOwn(options.languages, extension) ? options.languages[extension] : undefined
          return language === undefined
            ? Effect.succeed(undefined)
            : Effect.flatMap(client, (server) =>
                server === undefined
                  ? Effect.succeed(undefined)
                  : Effect.map(server.diagnose(uriOf(options.root, path), language, text), (problems) =>
                      problems?.map(toProblem)
                    )
              )
        }
      }
    })
  )

/** Maximum number of problems, and bytes of a file. */
const maxProblems = 20
const maxBytes = 1_000_000

/** Reads the changed files from a result. */
const changedFiles = ({ details }: ToolOutput): ReadonlyArray<string> => {
  if (!isObject(details)) return []
  const { files, path } = details
  if (typeof path === "string") return [path]
  return Array.isArray(files)
    ? files.flatMap((change) => (isObject(change) && typeof change["path"] === "string" ? [change["path"]] : []))
    : []
}

const renderProblems = (path: string, problems: ReadonlyArray<Problem>): string => {
  const relevant = problems.filter(({ severity }) => severity !== "hint")
  if (relevant.length === 0) return ""
  const rows = relevant.slice(0, maxProblems).map((one) => `${one.line}:${one.column} ${one.severity} ${one.message}`)
  const more = relevant.length > maxProblems ? [`and ${relevant.length - maxProblems} more`] : []
  return [`[the language server says of ${oneLine(path)}:]`, ...rows, ...more].join("\n")
}

/** Makes the middleware. It adds up to 20 errors and warnings of a file to the result of its edit. */
export const make = (): Middleware.Middleware<never, Backend | LanguageServer> => {
  const diagnoseFile = Effect.fnUntraced(function* (path: string) {
    const backend = yield* Backend
    const server = yield* LanguageServer
    const [file] = yield* backend.download([path])
    if (file?.ok !== true || file.value.length > maxBytes) return ""
    const problems = yield* server.diagnose(path, new TextDecoder().decode(file.value))
    return problems === undefined ? "" : renderProblems(path, problems)
  })
  return Middleware.make<never, Backend | LanguageServer>({
    name: "LspDiagnostics",
    inherit: true,
    wrapToolCall: (call, next) =>
      call.annotations.editsFiles === true
        ? Effect.flatMap(next(call), (output) =>
            output.isError
              ? Effect.succeed(output)
              : Effect.map(Effect.forEach(changedFiles(output).slice(0, 10), diagnoseFile), (all) => {
                  const text = all.filter((one) => one !== "").join("\n")
                  return text === "" ? output : { ...output, content: [...output.content, Content.text(`\n${text}`)] }
                })
          )
        : next(call)
  })
}
