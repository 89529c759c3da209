/** Answers the requests of an agent of others: by our approvals, our files and our commands. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import { fromUnknown, isObject, type JsonObject } from "../../../core/Json.ts"
import * as Question from "../../../core/Question.ts"
import * as Sandbox from "../../../core/Sandbox.ts"
import type { ToolContext } from "../../../core/ToolContext.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { AcpError } from "../../AcpError.ts"
import { isWithin } from "../paths.ts"

/** Answers of requests, in the fiber of the run: only there can a person be asked. */
export interface Answering {
  readonly permit: (params: Acp.RequestPermissionRequest) => Effect.Effect<Acp.RequestPermissionResponse>
  readonly read: (params: Acp.ReadTextFileRequest) => Effect.Effect<Acp.ReadTextFileResponse, AcpError>
  readonly write: (params: Acp.WriteTextFileRequest) => Effect.Effect<Acp.WriteTextFileResponse, AcpError>
  readonly create: (
    params: Acp.CreateTerminalRequest
  ) => Effect.Effect<Acp.CreateTerminalResponse, AcpError, Scope.Scope>
  readonly output: (params: Acp.TerminalOutputRequest) => Effect.Effect<Acp.TerminalOutputResponse, AcpError>
  readonly wait: (params: Acp.WaitForTerminalExitRequest) => Effect.Effect<Acp.WaitForTerminalExitResponse, AcpError>
  readonly end: (params: Acp.KillTerminalRequest) => Effect.Effect<Acp.KillTerminalResponse, AcpError>
}

/** The output of a command so far, and its end. */
interface Shown {
  output: string
  isCut: boolean
  exit: Acp.TerminalExitStatus | undefined
}

interface Terminal {
  readonly shown: Shown
  readonly fiber: Fiber.Fiber<Acp.TerminalExitStatus>
}

/** The most characters of a terminal's output that are kept, and the most terminals. */
const limits = { output: 1_000_000, terminals: 32 } as const

const failed = (method: string) => (error: { readonly message: string }) =>
  new AcpError({ reason: "Refused", method, detail: error.message })

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const isAllowing = ({ kind }: Acp.PermissionOption): boolean => kind === "allow_once"

const detailsOf = (toolCall: Acp.ToolCallUpdate): JsonObject => {
  const { content, kind, locations, rawInput, title } = toolCall
  const json = fromUnknown({ title, kind, rawInput, locations, content })
  return isObject(json) ? json : {}
}

/** The files that a permitted call names. */
const filesOf = ({ content, locations }: Acp.ToolCallUpdate): ReadonlyArray<string> => [
  ...(locations ?? []).map(({ path }) => path),
  ...(content ?? []).flatMap((one) => (one.type === "diff" ? [one.path] : []))
]

export const makeAnswering = (parts: {
  readonly name: string
  readonly cwd: string
  readonly backend: Backend.Service
  readonly context: ToolContext["Service"]
  /** Gives the path of the backend for a path of the machine. */
  readonly inner: (path: string) => string
}): Answering => {
  const { backend, context, cwd, inner, name } = parts
  const permitted = new Set<string>()
  let commands = 0
  const terminals = new Map<string, Terminal>()

  const ask = (text: string, details: JsonObject): Effect.Effect<boolean> =>
    Effect.match(context.ask(Question.approval(cut(oneLine(`${name}: ${text}`), 1_000), details)), {
      onFailure: () => false,
      onSuccess: () => true
    })

  const placeOf = (method: string, path: string): Effect.Effect<string, AcpError> =>
    isWithin(path, cwd)
      ? Effect.succeed(inner(path))
      : Effect.fail(new AcpError({ reason: "Refused", method, detail: `${oneLine(path)} is outside of the folder` }))

  const find = (method: string, id: string): Effect.Effect<Terminal, AcpError> => {
    const terminal = terminals.get(id)
    return terminal === undefined
      ? Effect.fail(new AcpError({ reason: "NotFound", method, detail: "there is no such terminal" }))
      : Effect.succeed(terminal)
  }

  return {
    permit: Effect.fnUntraced(function* ({ options, toolCall }) {
      const allowing = options.find(isAllowing)
      const rejecting = options.find(({ kind }) => kind === "reject_once")
      const what = toolCall.title ?? toolCall.name ?? toolCall.kind ?? "a call"
      const isAllowed = allowing !== undefined && (yield* ask(what, detailsOf(toolCall)))
      if (isAllowed) {
        for (const file of filesOf(toolCall)) permitted.add(file)
        if (toolCall.kind === "execute") commands += 1
      }
      const chosen = isAllowed ? allowing : rejecting
      return {
        outcome: chosen === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: chosen.optionId }
      }
    }),
    read: Effect.fnUntraced(function* ({ limit, line, path }) {
      const method = "fs/read_text_file"
      const [found] = yield* backend.download([yield* placeOf(method, path)])
      if (found?.ok !== true) {
        const detail = found === undefined ? "it can't be read" : found.error.message
        return yield* new AcpError({ reason: "NotFound", method, detail })
      }
      const text = new TextDecoder().decode(found.value)
      if (typeof line !== "number" && typeof limit !== "number") return { content: text }
      const from = Math.max(1, line ?? 1) - 1
      const lines = text.split("\n").slice(from, typeof limit === "number" ? from + limit : undefined)
      return { content: lines.join("\n") }
    }),
    write: Effect.fnUntraced(function* ({ content, path }) {
      const method = "fs/write_text_file"
      const place = yield* placeOf(method, path)
      // A write that no permission was asked for is asked about here.
      if (!permitted.has(path) && !(yield* ask(`writes ${path}`, { path, content: cut(content, 4_000) }))) {
        return yield* new AcpError({ reason: "Refused", method, detail: "nobody allowed this" })
      }
      yield* Effect.mapError(backend.write(place, content), failed(method))
      return {}
    }),
    create: Effect.fnUntraced(function* ({ args = [], command, cwd: folder, env = [] }) {
      const method = "terminal/create"
      if (!Sandbox.isSandbox(backend)) {
        return yield* new AcpError({ reason: "Refused", method, detail: "there are no commands here" })
      }
      if (terminals.size >= limits.terminals) {
        return yield* new AcpError({ reason: "Refused", method, detail: "too many terminals are open" })
      }
      const line = args.length === 0 ? command : [command, ...args].map(quote).join(" ")
      const place = folder === undefined || folder === null ? undefined : yield* placeOf(method, folder)
      if (commands > 0) commands -= 1
      else if (!(yield* ask(`runs ${line}`, { command: cut(line, 4_000) }))) {
        return yield* new AcpError({ reason: "Refused", method, detail: "nobody allowed this" })
      }
      const variables = Object.fromEntries(env.map(({ name: variable, value }) => [variable, value]))
      const shown: Shown = { output: "", isCut: false, exit: undefined }
      const run = Stream.runFold(
        backend.executeStream(line, { cwd: place, env: variables }),
        (): Acp.TerminalExitStatus => ({ exitCode: null }),
        (status, event) => {
          if (event._tag === "Exited") return { exitCode: event.exitCode }
          const output = shown.output + event.text
          shown.isCut ||= output.length > limits.output
          shown.output = output.slice(-limits.output)
          return status
        }
      ).pipe(Effect.orElseSucceed((): Acp.TerminalExitStatus => ({ signal: "SIGKILL" })))
      const fiber = yield* Effect.forkScoped(
        Effect.tap(run, (status) =>
          Effect.sync(() => {
            shown.exit = status
          })
        )
      )
      const terminalId = `terminal-${terminals.size + 1}`
      terminals.set(terminalId, { shown, fiber })
      return { terminalId }
    }),
    output: Effect.fnUntraced(function* ({ terminalId }) {
      const { exit, isCut, output } = (yield* find("terminal/output", terminalId)).shown
      return { output, truncated: isCut, ...(exit === undefined ? {} : { exitStatus: exit }) }
    }),
    wait: Effect.fnUntraced(function* ({ terminalId }) {
      const { fiber } = yield* find("terminal/wait_for_exit", terminalId)
      const exit = yield* Fiber.await(fiber)
      return exit._tag === "Success" ? exit.value : { signal: "SIGKILL" }
    }),
    end: Effect.fnUntraced(function* ({ terminalId }) {
      const { fiber } = yield* find("terminal/kill", terminalId)
      yield* Fiber.interrupt(fiber)
      return {}
    })
  }
}
