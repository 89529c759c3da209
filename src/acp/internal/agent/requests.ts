/** Answers the requests of an agent of others: by our approvals, our files and our commands. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Backend from "../../../core/Backend.ts"
import { fromUnknown, isObject, type JsonObject } from "../../../core/Json.ts"
import * as Question from "../../../core/Question.ts"
import * as Sandbox from "../../../core/Sandbox.ts"
import type { ToolContext } from "../../../core/ToolContext.ts"
import { defined } from "../../../support/json/defined.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { AcpError } from "../../AcpError.ts"
import { isWithin } from "../paths.ts"

/** Answers of requests, in the fiber of the run: only there can a person be asked. */
export interface ClientHandlers {
  readonly permit: (params: Acp.RequestPermissionRequest) => Effect.Effect<Acp.RequestPermissionResponse>
  readonly read: (params: Acp.ReadTextFileRequest) => Effect.Effect<Acp.ReadTextFileResponse, AcpError>
  readonly write: (params: Acp.WriteTextFileRequest) => Effect.Effect<Acp.WriteTextFileResponse, AcpError>
  readonly create: (
    params: Acp.CreateTerminalRequest
  ) => Effect.Effect<Acp.CreateTerminalResponse, AcpError, Scope.Scope>
  readonly output: (params: Acp.TerminalOutputRequest) => Effect.Effect<Acp.TerminalOutputResponse, AcpError>
  readonly wait: (params: Acp.WaitForTerminalExitRequest) => Effect.Effect<Acp.WaitForTerminalExitResponse, AcpError>
  readonly end: (params: Acp.KillTerminalRequest) => Effect.Effect<Acp.KillTerminalResponse, AcpError>
  readonly release: (params: Acp.ReleaseTerminalRequest) => Effect.Effect<Acp.ReleaseTerminalResponse, AcpError>
}

/** The output of a command so far. */
interface OutputBuffer {
  output: string
  isCut: boolean
}

interface Terminal {
  readonly buffer: OutputBuffer
  readonly fiber: Fiber.Fiber<Acp.TerminalExitStatus>
}

/** The most characters of a terminal's output that are kept, and the most open terminals. */
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

const changing: ReadonlySet<unknown> = new Set<Acp.ToolKind>(["edit", "delete", "move"])

/** The files that a permitted call changes. A call that reads names files too. */
const filesOf = ({ content, kind, locations }: Acp.ToolCallUpdate): ReadonlySet<string> =>
  new Set([
    ...(changing.has(kind) ? (locations ?? []).map(({ path }) => path) : []),
    ...(content ?? []).flatMap((one) => (one.type === "diff" ? [one.path] : []))
  ])

/** The command that a permitted call runs, as the person saw it. */
const commandOf = ({ kind, rawInput }: Acp.ToolCallUpdate): string | undefined =>
  kind === "execute" && Predicate.hasProperty(rawInput, "command") && typeof rawInput.command === "string"
    ? rawInput.command
    : undefined

const killed: Acp.TerminalExitStatus = { signal: "SIGKILL" }

const exitOf = (exit: Exit.Exit<Acp.TerminalExitStatus>): Acp.TerminalExitStatus =>
  Exit.isSuccess(exit) ? exit.value : killed

export const makeAnswering = (parts: {
  readonly name: string
  readonly cwd: string
  readonly backend: Backend.Service
  readonly context: ToolContext["Service"]
  /** Gives the path of the backend for a path of the machine. */
  readonly inner: (path: string) => string
}): ClientHandlers => {
  const { backend, context, cwd, inner, name } = parts
  // A permitted call allows one write of each of its files, or one run of its command.
  const writes: Array<string> = []
  const commands: Array<string> = []
  const terminals = new Map<string, Terminal>()
  let opened = 0

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
        writes.push(...filesOf(toolCall))
        const command = commandOf(toolCall)
        if (command !== undefined) commands.push(command)
      }
      const option = isAllowed ? allowing : rejecting
      return {
        outcome: option === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: option.optionId }
      }
    }),
    read: Effect.fnUntraced(function* ({ limit, line, path }) {
      const method = "fs/read_text_file"
      const [file] = yield* backend.download([yield* placeOf(method, path)])
      if (file?.ok !== true) {
        const detail = file === undefined ? "it can't be read" : file.error.message
        return yield* new AcpError({ reason: "NotFound", method, detail })
      }
      const text = new TextDecoder().decode(file.value)
      if (typeof line !== "number" && typeof limit !== "number") return { content: text }
      const from = Math.max(1, line ?? 1) - 1
      const lines = text.split("\n").slice(from, typeof limit === "number" ? from + limit : undefined)
      return { content: lines.join("\n") }
    }),
    write: Effect.fnUntraced(function* ({ content, path }) {
      const method = "fs/write_text_file"
      const place = yield* placeOf(method, path)
      // A write that no permitted call named is asked about here.
      if (!takeOne(writes, path) && !(yield* ask(`writes ${path}`, { path, content }))) {
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
      const variables = Object.fromEntries(env.map(({ name: variable, value }) => [variable, value]))
      // Variables change a command, and the permitted call did not show them.
      const isPermitted = env.length === 0 && takeOne(commands, line)
      if (!isPermitted && !(yield* ask(`runs ${line}`, { command: line, cwd: place ?? ".", env: variables }))) {
        return yield* new AcpError({ reason: "Refused", method, detail: "nobody allowed this" })
      }
      const buffer: OutputBuffer = { output: "", isCut: false }
      const run = Stream.runFold(
        backend.executeStream(line, { cwd: place, env: variables }),
        (): Acp.TerminalExitStatus => ({ exitCode: null }),
        (status, event) => {
          if (event._tag === "Exited") return { exitCode: event.exitCode }
          const output = buffer.output + event.text
          buffer.isCut ||= output.length > limits.output
          buffer.output = output.slice(-limits.output)
          return status
        }
      ).pipe(Effect.orElseSucceed(() => killed))
      const fiber = yield* Effect.forkScoped(run)
      opened += 1
      const terminalId = `terminal-${opened}`
      terminals.set(terminalId, { buffer, fiber })
      return { terminalId }
    }),
    output: Effect.fnUntraced(function* ({ terminalId }) {
      const { buffer, fiber } = yield* find("terminal/output", terminalId)
      const exit = fiber.pollUnsafe()
      return defined({
        output: buffer.output,
        truncated: buffer.isCut,
        exitStatus: exit === undefined ? undefined : exitOf(exit)
      })
    }),
    wait: Effect.fnUntraced(function* ({ terminalId }) {
      const { fiber } = yield* find("terminal/wait_for_exit", terminalId)
      return exitOf(yield* Fiber.await(fiber))
    }),
    end: Effect.fnUntraced(function* ({ terminalId }) {
      const { fiber } = yield* find("terminal/kill", terminalId)
      yield* Fiber.interrupt(fiber)
      return {}
    }),
    release: Effect.fnUntraced(function* ({ terminalId }) {
      const { fiber } = yield* find("terminal/release", terminalId)
      yield* Fiber.interrupt(fiber)
      terminals.delete(terminalId)
      return {}
    })
  }
}

/** Removes a value from a list once. Returns true if the list contained it. */
const takeOne = (values: Array<string>, value: string): boolean => {
  const index = values.indexOf(value)
  if (index !== -1) values.splice(index, 1)
  return index !== -1
}
