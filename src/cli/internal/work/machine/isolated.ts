/**
 * Isolates the commands that nobody approved. In the mode `auto-edit` a command runs in a sandbox of this machine, without a
 * question. A command that a person, or a rule of the person, approved runs with all rights, and so does a command that asks
 * for them by `outside: true`.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as FileTools from "../../../../backends/FileTools.ts"
import * as OsSandbox from "../../../../backends/OsSandbox.ts"
import * as Processes from "../../../../backends/Processes.ts"
import type { Backend } from "../../../../core/Backend.ts"
import * as Content from "../../../../core/Content.ts"
import { isObject, type JsonObject } from "../../../../core/Json.ts"
import * as Middleware from "../../../../core/Middleware.ts"
import type { Run } from "../../../../core/Run.ts"
import * as Sandbox from "../../../../core/Sandbox.ts"
import { canonical } from "../../../../core/schema/jsonTree.ts"
import { lastRequestOn, suspension } from "../../../../core/thread/suspension.ts"
import * as Tool from "../../../../core/Tool.ts"
import type { ToolContext } from "../../../../core/ToolContext.ts"
import * as ToolError from "../../../../core/ToolError.ts"
import * as ToolOutput from "../../../../core/ToolOutput.ts"
import * as Taint from "../../../../middleware/Taint.ts"
import { isOutside, mentionsLimit, placeAt, toolName } from "../../approvals/isolated.ts"
import { commandsFor, type LearnedRules } from "../../approvals/learned.ts"
import type { Permits } from "../../approvals/permits.ts"
import type { Approvals, Settings } from "../../config/settings.ts"
import { Enclosure } from "./enclosure.ts"

/** The isolation of commands that nobody approved, for all sessions of the program. */
export interface Isolation {
  /** Tells whether the program isolates them: the settings leave it open, and bubblewrap works here. */
  readonly isOn: Effect.Effect<boolean>
  /** True once a command ran isolated: it may have changed the folder, or change it still. */
  readonly hasBegun: () => boolean
  readonly begin: () => void
}

/** Makes the isolation. Bubblewrap is tried once, when somebody wants to know. */
export const makeIsolation = Effect.fnUntraced(function* ({ sandbox }: Settings, isDemo: boolean) {
  const isOpen = sandbox === undefined && !isDemo && process.platform === "linux"
  let hasBegun = false
  return {
    isOn: isOpen ? yield* Effect.cached(Effect.map(OsSandbox.probe, ({ works }) => works)) : Effect.succeed(false),
    hasBegun: () => hasBegun,
    begin: () => {
      hasBegun = true
    }
  } satisfies Isolation
})

// ---- The tool

const outsideWords =
  "A command that nobody approved may run isolated: it reaches the working folder alone, without network, home and changes of .git. true runs it with all rights of the user, who is asked: give it only to a command that needs more"

const note =
  "[It ran isolated: this folder and the programs of the system alone, without network, home, other programs of the machine and changes of .git. If it needs them, call execute again with outside: true; the user is asked.]"

/** Tells the model that a failure may come from the isolation. A failure without a word may, too: `which` finds no program of a home. */
const explain = (output: ToolOutput.ToolOutput): ToolOutput.ToolOutput =>
  mentionsLimit(ToolOutput.text(output)) || (output.isError && ToolOutput.text(output).startsWith("[No output]"))
    ? { ...output, content: [...output.content, Content.text(note)] }
    : output

type CommandTool = Tool.Tool<Backend | Sandbox.Sandbox | ToolContext>

/** Runs the call of a built-in tool. */
const perform = (tool: CommandTool, args: JsonObject) =>
  Effect.suspend(() => {
    const decoding = tool.prepare(args)
    return Effect.flatMap(Result.isResult(decoding) ? Effect.fromResult(decoding) : decoding, ({ execute }) => execute)
  })

/** Runs a call with the commands of the enclosure, and the files of the session. It fails if the enclosure can't be opened. */
const performIsolated = Effect.fnUntraced(function* (tool: CommandTool, args: JsonObject) {
  const session = yield* Sandbox.Sandbox
  const open = yield* Enclosure
  const enclosure = yield* Effect.mapError(open, ({ message }) => ToolError.make(message))
  // A coder in a worktree has another folder.
  const inFolder = (options: Sandbox.ExecuteOptions = {}) => ({ ...options, cwd: options.cwd ?? session.paths?.cwd })
  const output = yield* Effect.provideService(perform(tool, args), Sandbox.Sandbox, {
    ...session,
    onHost: undefined,
    execute: (command, options) => enclosure.execute(command, inFolder(options)),
    executeStream: (command, options) => enclosure.executeStream(command, inFolder(options))
  })
  return explain(output)
})

const describePlace = (outside: unknown): string =>
  outside === false
    ? "\nIt runs isolated: in this folder, without network and home."
    : outside === true
      ? "\nIt runs outside of the sandbox, with all your rights."
      : ""

const withPlace = (tool: CommandTool): Tool.Tool<Backend | Sandbox.Sandbox | ToolContext | Enclosure> => {
  const { annotations, describe, description, parameters } = tool
  const { properties } = parameters
  const fields = isObject(properties) ? properties : {}
  return Tool.dynamic(toolName, {
    description,
    annotations,
    parameters: { ...parameters, properties: { ...fields, outside: { type: "boolean", description: outsideWords } } },
    describe: (args) => `${describe?.(placeAt(args, undefined)) ?? toolName}${describePlace(args["outside"])}`,
    execute: (args) => {
      const plain = placeAt(args, undefined)
      return args["outside"] === false ? performIsolated(tool, plain) : perform(tool, plain)
    }
  })
}

/** The tool `execute` of the program, whose calls may run isolated, and the tools for its processes. */
export const commandTools = () =>
  FileTools.make({ only: [], execute: { background: true } }).map((tool) =>
    tool.name === toolName ? withPlace(tool) : tool
  )

// ---- The choice of the place

/** The parts that decide on the place of commands. */
interface Choosing {
  readonly permits: Permits
  readonly isolation: Isolation
  readonly mode: Effect.Effect<Approvals>
  /** The approvals for good. */
  readonly learned: () => ReadonlyArray<LearnedRules>
  /** Tells whether a hook allowed a call. */
  readonly isAllowed: (callId: string) => boolean
}

type PreparedCall = Middleware.PreparedCall

/**
 * Chooses the place of a call. In the mode `auto-edit`, calls on which a rule or a person decides run outside, the others
 * isolated. In a home nothing is isolated, as its files start programs. In other modes the place stays open. Reading commands run unasked in each mode: a command that runs meanwhile could swap a file under
 * them, so they are isolated as soon as a command is.
 */
const choosePlace = (
  { isAllowed, isolation, learned, permits }: Choosing,
  now: Approvals,
  isMarked: boolean,
  call: PreparedCall,
  path: ReadonlyArray<string>
): boolean | undefined => {
  const args = call.given()
  const request = { toolName: call.name, arguments: placeAt(args, undefined), path }
  const ruling = permits.rule({ name: call.name, arguments: request.arguments }, commandsFor(learned(), request))
  const isReading = ruling?._tag === "Allow" && ruling.by === "reads"
  if (now !== "auto-edit") return isReading && isolation.hasBegun() ? false : undefined
  // A process goes on among other calls, and a person may want to reach it.
  if (isOutside({ name: call.name, arguments: args }) || args["background"] === true) return true
  if (isReading) return false
  return ruling !== undefined || isMarked || permits.restrictsFiles || permits.holdsHome() || isAllowed(call.id)
}

/** The place of a call that a person was asked about in an earlier run: a decision counts for these arguments. */
const askedPlace = Effect.fnUntraced(function* (run: Run, call: PreparedCall) {
  const request = lastRequestOn(yield* run.state.get(suspension), run.path, call.id)
  const isSame =
    request !== undefined &&
    canonical(placeAt(request.arguments, undefined)) === canonical(placeAt(call.arguments, undefined))
  return isSame ? request.arguments : undefined
})

/** Chooses where commands run, before anybody rules on them. */
const choosing = (options: Choosing): Middleware.Middleware =>
  Middleware.make({
    name: "Isolation",
    inherit: true,
    rewriteArguments: Effect.fnUntraced(function* (run, calls) {
      if (calls.every(({ name }) => name !== toolName)) return []
      const now = yield* options.mode
      const { arrivals, cleared } = yield* run.state.get(Taint.labels)
      return yield* Effect.forEach(calls, (call) =>
        call.name === toolName
          ? Effect.map(
              askedPlace(run, call),
              (asked) => asked ?? placeAt(call.arguments, choosePlace(options, now, arrivals > cleared, call, run.path))
            )
          : Effect.undefined
      )
    })
  })

/** The middleware of agents whose commands may run isolated. */
export const isolating = (options: Choosing): ReadonlyArray<Middleware.Middleware<never, Sandbox.Sandbox>> => [
  choosing(options),
  Processes.notices()
]
