/**
 * Asks a person about calls that change or send something once untrusted text is in the conversation.
 *
 * Results of tools that reach outside (`openWorld`, or of an MCP server), or that quote others (`untrusted`), mark the
 * whole tree of agents, and its thread: summaries, sub-agents, tasks in the background, and later runs of the thread are
 * marked too. So do the descriptions of an MCP server's tools. {@link layer} carries the marks through files. From then
 * on, destructive calls and calls that send something ask. So do reads of an address that nobody named, and calls that
 * would leak a secret. Without outside text, nothing asks.
 *
 * A tool that has no annotations is trusted and harmless, unless the middleware is `strict`.
 *
 * ```ts
 * import { Agent, Tool } from "effect-deepagents"
 * import { Taint } from "effect-deepagents/middleware"
 *
 * declare const readMail: Tool.Tool
 * declare const sendMoney: Tool.Tool
 *
 * const agent = Agent.make({
 *   name: "assistant",
 *   prompt: "You look after mail and bills.",
 *   tools: [readMail, sendMoney],
 *   middleware: [Taint.make({ untrusted: ["read_mail"], secrets: { read_mail: ["mail"] } })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as AgentState from "../core/AgentState.ts"
import * as Backend from "../core/Backend.ts"
import * as Middleware from "../core/Middleware.ts"
import { CurrentRun } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as shapes from "./internal/shapes.ts"
import * as TaintedFiles from "./internal/taint/files.ts"
import * as Marks from "./internal/taint/taint.ts"

/** The name of this middleware. */
export const name = Marks.name

/**
 * The marks of a conversation: how often something untrusted came in, up to which of these times a person has cleared
 * it, from which tools it came, and the labels of secrets that are in it. `asked` is how much had come in when a call
 * was asked about. `described` are the MCP servers whose tool descriptions have marked it.
 */
export const Labels = Marks.Labels
export interface Labels extends Schema.Schema.Type<typeof Labels> {}

/** The slot of the marks: the whole tree of agents shares it, and a thread keeps it. */
export const labels: AgentState.Slot<Labels> = Marks.labels

/**
 * Names of tools, hosts and servers. Without them, the annotations of the tools count. `untrusted` and `acts` match a
 * name however it is spelt. Lists that loosen (`trusted`, `harmless`, `clearance`) need the exact name, and that of a
 * server's tool with the server's prefix.
 */
export interface Options {
  /**
   * Counts a missing annotation as the worse answer. Results are untrusted unless the tool says `openWorld: false`.
   * Calls act unless the tool says `readOnly`, or both `destructive: false` and `openWorld: false`. The annotations of a
   * server's tools count for nothing, unless `servers` names the server. Default: a missing annotation counts as
   * harmless.
   */
  readonly strict?: boolean | undefined
  /**
   * Tools whose results are untrusted, against their annotations. Default: those that say `openWorld` or `untrusted`,
   * tools of MCP servers and of the provider, and tasks in the background.
   */
  readonly untrusted?: ReadonlyArray<string> | undefined
  /**
   * Tools whose results are trusted, though their annotations say otherwise. Tools that the provider runs never are.
   * Default: none.
   */
  readonly trusted?: ReadonlyArray<string> | undefined
  /**
   * Tools whose calls ask once something untrusted is in. Default: `destructive` or `lasting` tools, and tools that are
   * `openWorld` or of a server and not `readOnly`.
   */
  readonly acts?: ReadonlyArray<string> | undefined
  /**
   * Tools whose calls never ask. Reads of an address that nobody named ask, too, unless their tool is here. Default:
   * none.
   */
  readonly harmless?: ReadonlyArray<string> | undefined
  /** Selects calls that never ask, by their arguments too. Default: none. */
  readonly except?: ((call: Middleware.PreparedCall) => boolean) | undefined
  /**
   * Hosts whose addresses may be read when something untrusted is in: `docs.example.com`, or `*.example.com` for all
   * below it. Default: hosts that the user's messages name.
   */
  readonly hosts?: ReadonlyArray<string> | undefined
  /**
   * MCP servers whose tool descriptions and annotations are trusted; the results of their tools are not. The tools of any
   * other server mark a conversation from its beginning. Default: none.
   */
  readonly servers?: ReadonlyArray<string> | undefined
  /** Labels of secrets that the results of a tool bring in. Default: none. */
  readonly secrets?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  /** Labels that calls of a tool may send out. Other calls that go out ask while there are labels. Default: none. */
  readonly clearance?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  /** Who may decide (see `Approval.Request`). Default: anybody. */
  readonly deciders?: ReadonlyArray<string> | undefined
}

/**
 * Marks the run of the current fiber before it reads outside text without a tool that declares it: for your own
 * backends and services. `from` is the source, as a person reads it. Outside of a run it does nothing.
 */
export const bringIn = (from: string): Effect.Effect<void> =>
  Effect.flatMap(CurrentRun, (run) => (run === undefined ? Effect.void : Marks.mark(run.state, from, [], true)))

const refuseMake = makeMiddlewareCheck(name, shapes.taintMake)

/**
 * Asks a person about deeds in a marked conversation. An approval with `always` clears the conversation: earlier
 * outside text asks no more.
 */
export const make = (options: Options = {}): Middleware.AskingMiddleware =>
  refuseMake(options) ?? Middleware.make({ ...Marks.parts(options), asks: true })

const carrying = (roots?: ReadonlyArray<string>): Layer.Layer<Backend.Backend, never, Backend.Backend> =>
  Backend.layer(
    Backend.Backend.use((backend) =>
      Effect.succeed(
        TaintedFiles.labelled(backend, {
          roots,
          isMarked: Effect.flatMap(CurrentRun, (run) =>
            run === undefined
              ? Effect.undefined
              : Effect.map(run.state.get(Marks.labels), ({ arrivals, cleared, secrets }) =>
                  arrivals > cleared || secrets.length > 0 ? { isDirty: arrivals > cleared, secrets } : undefined
                )
          ),
          mark: (path, { isDirty, secrets }) =>
            Effect.flatMap(CurrentRun, (run) =>
              run === undefined ? Effect.void : Marks.mark(run.state, path, secrets, isDirty)
            )
        })
      )
    )
  )

/**
 * Carries marks through files. A file from a marked run gets a label, and the label marks each run that reads the file,
 * also in other threads and processes. The labels are in a folder of the same backend; agents can't see or change it.
 * Commands bypass it, so they ask in a marked run, since they are destructive. Files without a label are trusted.
 */
export const layer: Layer.Layer<Backend.Backend, never, Backend.Backend> = carrying()

/**
 * Like {@link layer}, but trusts the files of these folders only. A run that reads, lists or searches other files is
 * marked: for checkouts, downloads and packages.
 */
export const layerTrusting = (folders: ReadonlyArray<string>): Layer.Layer<Backend.Backend, never, Backend.Backend> =>
  carrying(folders)
