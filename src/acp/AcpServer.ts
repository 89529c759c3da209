/**
 * Serves agents to editors and other programs by the Agent Client Protocol, on standard input and output.
 *
 * ```ts
 * import { NodeRuntime, NodeStdio } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { AcpServer } from "effect-deepagents/acp"
 * import { FileTools } from "effect-deepagents/backends"
 * import { HumanInTheLoop } from "effect-deepagents/middleware"
 * import { MemorySessions } from "effect-deepagents/sessions"
 * import { TestChatModel } from "effect-deepagents/testing"
 *
 * const coder = Agent.make({
 *   name: "coder",
 *   prompt: "You mend this code.",
 *   tools: FileTools.make({ execute: true }),
 *   middleware: [HumanInTheLoop.make({ destructive: true })]
 * })
 *
 * const server = AcpServer.layer({ agents: { coder } }).pipe(
 *   Layer.provide([NodeStdio.layer, MemorySessions.layer, TestChatModel.script([])])
 * )
 *
 * const main = () => NodeRuntime.runMain(Layer.launch(server))
 * ```
 *
 * A session is a thread of the `SessionStore`. For each session the server provides `Backend` and `Sandbox`: the folder of
 * the editor, with its unsaved texts and its terminals in front, if it offers them. It provides `Approvals` too: a person
 * at the editor decides. Whoever needs another machine gives it to the agent by `Agent.provide`.
 */
import type { NoSuchElementError } from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type { Scope } from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import type * as HostShell from "../backends/HostShell.ts"
import type * as Agent from "../core/Agent.ts"
import type { Approvals } from "../core/Approval.ts"
import type { Backend } from "../core/Backend.ts"
import { IdGenerator } from "../core/IdGenerator.ts"
import type { Journal } from "../core/Journal.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { quietConsole } from "../support/effect/quiet.ts"
import { makeEffectCheck, makeLayerCheck } from "../support/options/check.ts"
import { AcpError } from "./AcpError.ts"
import type { SessionOpening, Session } from "./internal/model.ts"
import { loadSdk } from "./internal/sdk.ts"
import { connect } from "./internal/serve.ts"
import * as shapes from "./internal/shapes.ts"
import { stdioStream, withAnswers } from "./internal/wire.ts"

export type {
  Ask,
  Choice,
  Command,
  Gate,
  Mode,
  SessionOpening,
  CommandOutcome,
  Session,
  Setting
} from "./internal/model.ts"

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** The services that a server makes for each session. */
export type SessionServices = Approvals | Backend | Journal | Sandbox

/** The name of a server, and the limit of its messages. */
interface Identity {
  /** The name of the server, as editors show it. Default: `effect-deepagents`. */
  readonly name?: string | undefined
  /** The version of the server. Default: `0.0.0`. */
  readonly version?: string | undefined
  /** The most bytes of one message of a client. A larger one ends the connection. Default: 32 MiB. */
  readonly maxMessageBytes?: number | undefined
}

/** The agents to serve. */
export interface Options<
  Agents extends { readonly [name: string]: AnyAgent } = { readonly [name: string]: AnyAgent }
> extends Identity {
  /** The agents by name. A session begins with the first one; the person may choose another in the editor. */
  readonly agents: Agents
  /**
   * The mode in which sessions begin. A client can choose `yolo` only if sessions begin with it. Default: `ask`.
   */
  readonly mode?: "ask" | "auto-edit" | "plan" | "yolo" | undefined
  /** Options of the shell and the files of a session, beside its folder. Default: the machine's own shell. */
  readonly machine?: Omit<HostShell.Options, "cwd" | "folders"> | undefined
}

/** A server that opens sessions in its own way. */
export interface CustomServer<R> extends Identity {
  /** Opens a session for a new thread, or for a stored thread. Its scope ends with the session. */
  readonly open: (opening: SessionOpening) => Effect.Effect<Session, AcpError, R>
  /** Makes the id of a new session. Default: a random one. */
  readonly makeId?: Effect.Effect<string> | undefined
  /** The sessions. Default: the `SessionStore` of the context. */
  readonly store?: Effect.Effect<SessionStore["Service"], AcpError, Scope> | undefined
  /** Ways to sign in, at a terminal: arguments behind the command of the server. Default: none. */
  readonly login?:
    | ReadonlyArray<{
        /** The id of the way. */
        readonly id: string
        /** The name of the way, as editors show it. */
        readonly name: string
        /** The arguments of the program. */
        readonly args: ReadonlyArray<string>
      }>
    | undefined
}

const refuseServe = makeEffectCheck("AcpServer.serve", shapes.acpServerServe)

const noStore = new AcpError({
  reason: "Refused",
  detail: "the server has no SessionStore; provide a layer of effect-deepagents/sessions"
})

/** Serves one client on standard input and output, until the client leaves. `console` writes to stderr meanwhile. */
export const serve = <R = never>(options: CustomServer<R>): Effect.Effect<void, AcpError, Exclude<R, Scope> | Stdio> =>
  refuseServe(options) ??
  Effect.scoped(
    Effect.gen(function* () {
      yield* quietConsole
      const sdk = yield* loadSdk
      const {
        login = [],
        makeId,
        maxMessageBytes,
        name = "effect-deepagents",
        open,
        store,
        version = "0.0.0"
      } = options
      const own = yield* Effect.serviceOption(SessionStore)
      const ids = yield* IdGenerator
      const wire = withAnswers(yield* stdioStream(sdk, maxMessageBytes === undefined ? {} : { maxMessageBytes }))
      yield* connect(
        {
          sdk,
          name,
          version,
          open,
          login,
          makeId: makeId ?? Effect.sync(ids),
          store: store ?? Effect.mapError(Effect.fromOption(own), (_: NoSuchElementError) => noStore)
        },
        wire
      )
    })
  )

const refuseLayer = makeLayerCheck("AcpServer.layer", shapes.acpServerLayer)

type Needs<Agents> = Exclude<Agent.Services<Agents[keyof Agents]>, SessionServices>

/**
 * Serves agents, a session a thread. When the client leaves, the program that launched the layer ends.
 */
export const layer = <const Agents extends { readonly [name: string]: AnyAgent }>(
  options: Options<Agents>
): Layer.Layer<never, AcpError, Needs<Agents> | SessionStore | Stdio> =>
  refuseLayer(options) ?? Layer.effectDiscard(launch(options))

const launch = Effect.fnUntraced(function* ({ agents, machine, mode = "ask", ...identity }: Options) {
  const names = Object.keys(agents)
  const [first] = names
  const agent = first === undefined ? undefined : agents[first]
  if (first === undefined || agent === undefined)
    return yield* new AcpError({ reason: "Invalid", detail: "agents: name at least one agent" })
  // Sessions need them, and the answer to `initialize` does not.
  const Shell = yield* Effect.cached(Effect.promise(() => import("../backends/HostShell.ts")))
  const Gate = yield* Effect.cached(Effect.promise(() => import("./internal/gate.ts")))
  const launcher = Fiber.getCurrent()
  const served = serve({
    ...identity,
    open: Effect.fnUntraced(function* ({ cwd, folders }) {
      let name = first
      const sandbox = yield* Effect.mapError(
        (yield* Shell).make({ ...machine, cwd, folders: folders.map((path) => ({ path, access: "write" })) }),
        ({ message }) => new AcpError({ reason: "Invalid", detail: message })
      )
      const session: Session = {
        agent: () => agents[name] ?? agent,
        machine: sandbox,
        gate: (yield* Gate).makeGate(mode),
        metadata: () => ({ agent: name }),
        settings: () =>
          names.length < 2
            ? []
            : [
                {
                  id: "agent",
                  name: "Agent",
                  value: name,
                  choices: names.map((value) => ({ value, name: value, description: agents[value]?.description }))
                }
              ],
        change: (_, value) =>
          Effect.sync(() => {
            name = value
          })
      }
      return session
    })
  })
  yield* Effect.forkScoped(
    Effect.ensuring(
      served,
      Effect.sync(() => launcher?.interruptUnsafe())
    )
  )
})
