/**
 * Let nothing that came from outside act unseen: once untrusted text is in the conversation, calls that change or send
 * something ask a person.
 *
 * Results of tools that reach outside (`openWorld`, or of an MCP server) mark the whole tree of agents, and its thread:
 * summaries, sub-agents, tasks in the background, and later runs of the thread are marked too. {@link layer} carries the
 * marks through files. From then on, calls that are destructive, or go out, ask; so do calls by which a secret would
 * leave. Where nothing came from outside, nothing is asked.
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
 *   middleware: [Taint.suspending({ untrusted: ["read_mail"], secrets: { read_mail: ["mail"] } })]
 * })
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../core/AgentState.ts"
import * as Approval from "../core/Approval.ts"
import * as Backend from "../core/Backend.ts"
import * as Middleware from "../core/Middleware.ts"
import { CurrentRun, type Run } from "../core/Run.ts"
import { describeArguments } from "../core/ToolCall.ts"
import { normaliseName } from "../support/names.ts"
import * as TaintedFiles from "./internal/taintedFiles.ts"

/**
 * The name of this middleware.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "Taint"

/**
 * The marks of a conversation: how often something untrusted came in, up to which of these times a person has cleared
 * it, from which tools it came, and the labels of secrets that are in it. `asked` is how much had come in when a call
 * was asked about.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Labels = Schema.Struct({
  arrivals: Schema.Finite,
  cleared: Schema.Finite,
  from: Schema.Array(Schema.String),
  secrets: Schema.Array(Schema.String),
  asked: Schema.Record(Schema.String, Schema.Finite)
})
export interface Labels extends Schema.Schema.Type<typeof Labels> {}

const union = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): ReadonlyArray<string> =>
  right.every((one) => left.includes(one)) ? left : [...new Set([...left, ...right])]

const merge = (current: Labels, incoming: Labels): Labels => {
  const merged: Labels = {
    arrivals: Math.max(current.arrivals, incoming.arrivals),
    cleared: Math.max(current.cleared, incoming.cleared),
    from: union(current.from, incoming.from),
    secrets: union(current.secrets, incoming.secrets),
    asked: Object.keys(incoming.asked).every((id) => Object.hasOwn(current.asked, id))
      ? current.asked
      : { ...incoming.asked, ...current.asked }
  }
  const isSame =
    merged.arrivals === current.arrivals &&
    merged.cleared === current.cleared &&
    merged.from === current.from &&
    merged.secrets === current.secrets &&
    merged.asked === current.asked
  return isSame ? current : merged
}

/**
 * The slot of the marks: the whole tree of agents shares it, and a thread keeps it.
 *
 * @category constants
 * @since 0.1.0
 */
export const labels: AgentState.Slot<Labels> = AgentState.slot("taint", {
  schema: Labels,
  initial: { arrivals: 0, cleared: 0, from: [], secrets: [], asked: {} },
  shared: { merge }
})

/**
 * Names of tools that bring in what is untrusted, that act, and that are secret; without a word, the annotations count.
 *
 * - `untrusted`, `trusted`: tools whose results are, or are not, whatever they say. By default those are untrusted that
 *   are `openWorld`, those of MCP servers, and tasks in the background. Tools that the provider runs always are.
 * - `acts`, `harmless`: tools whose calls ask once something untrusted is in, or never do. By default those act that are
 *   `destructive`, those that are `openWorld`, or of a server, and not `readOnly`, and `remember`.
 * - `secrets`: the labels that results of a tool bring in; `clearance`: the labels that calls of a tool may send out. A
 *   call that goes out (`openWorld`, or of a server) asks while there are labels that it has no clearance for.
 * - `deciders`: who may decide (see `Approval.Request`)
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly untrusted?: ReadonlyArray<string> | undefined
  readonly trusted?: ReadonlyArray<string> | undefined
  readonly acts?: ReadonlyArray<string> | undefined
  readonly harmless?: ReadonlyArray<string> | undefined
  readonly secrets?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  readonly clearance?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  readonly deciders?: ReadonlyArray<string> | undefined
}

/** The state of the run above a task in the background, which has a state of its own. */
const Outer = Context.Reference<AgentState.Store | undefined>("effect-deepagents/middleware/Taint/Outer", {
  defaultValue: () => undefined
})

type Tool = Pick<Middleware.PreparedCall, "name" | "annotations">

const background = ["start_task", "check_task"]

/** The tool whose facts reach other threads, where no mark goes with them (`MemoryTools`). */
const lasting = "remember"

/** Options by names as they are compared, worked out once. */
interface Rules {
  readonly untrusted: ReadonlySet<string>
  readonly trusted: ReadonlySet<string>
  readonly acts: ReadonlySet<string>
  readonly harmless: ReadonlySet<string>
  readonly secrets: Labelled
  readonly clearance: Labelled
  readonly deciders: ReadonlyArray<string> | undefined
}

/** Labels by the name of a tool, or else by how names are compared. */
type Labelled = (tool: string, key: string) => ReadonlyArray<string>

const keysOf = (names: ReadonlyArray<string> = []): ReadonlySet<string> => new Set(names.map(normaliseName))

const none: ReadonlyArray<string> = []

const labelled = (by: Options["secrets"]): Labelled => {
  if (by === undefined) return () => none
  const exact = new Map(Object.entries(by))
  const alike = new Map([...exact].map(([tool, its]) => [normaliseName(tool), its]))
  return (tool, key) => exact.get(tool) ?? alike.get(key) ?? none
}

const rulesOf = ({ acts, clearance, deciders, harmless, secrets, trusted, untrusted }: Options): Rules => ({
  untrusted: keysOf(untrusted),
  trusted: keysOf(trusted),
  acts: keysOf(acts),
  harmless: keysOf(harmless),
  secrets: labelled(secrets),
  clearance: labelled(clearance),
  deciders
})

const isOutside = ({ annotations }: Tool): boolean => annotations.openWorld === true || annotations.server !== undefined

/** Says what results of a tool bring in. */
const arrivalOf = ({ secrets, trusted, untrusted }: Rules, tool: Tool) => {
  const key = normaliseName(tool.name)
  return {
    isDirty: untrusted.has(key) || (!trusted.has(key) && (isOutside(tool) || background.includes(tool.name))),
    labels: secrets(tool.name, key)
  }
}

/** Says what calls of a tool do: whether they act, and which of these labels they would send out without clearance. */
const deedOf = ({ acts, clearance, harmless }: Rules, tool: Tool, secrets: ReadonlyArray<string>) => {
  const key = normaliseName(tool.name)
  const isOut = isOutside(tool)
  const cleared = isOut && secrets.length > 0 ? clearance(tool.name, key) : none
  return {
    isActing:
      acts.has(key) ||
      (!harmless.has(key) &&
        (tool.annotations.destructive === true ||
          tool.name === lasting ||
          (isOut && tool.annotations.readOnly !== true))),
    leaving: isOut ? secrets.filter((label) => !cleared.includes(label)) : none
  }
}

/** Marks a conversation with what is about to come in. */
const mark = (state: AgentState.Store, from: string, secrets: ReadonlyArray<string>, isDirty: boolean) =>
  state.update(labels, (current) => ({
    ...current,
    arrivals: current.arrivals + (isDirty ? 1 : 0),
    from: isDirty ? union(current.from, [from]).slice(-20) : current.from,
    secrets: union(current.secrets, secrets)
  }))

/**
 * Marks the run that a fiber works for, before it reads what comes from outside by another way than a tool that says so:
 * for backends and services of your own. `from` is what a person is told of where it came from; outside of a run
 * nothing happens.
 *
 * @category combinators
 * @since 0.1.0
 */
export const bringIn = (from: string): Effect.Effect<void> =>
  Effect.flatMap(CurrentRun, (run) => (run === undefined ? Effect.void : mark(run.state, from, [], true)))

const gateOf = (
  rules: Rules,
  run: Run,
  call: Middleware.PreparedCall,
  current: Labels,
  approved: ReadonlyArray<string>
) => {
  const { deciders } = rules
  const { isActing, leaving } = deedOf(rules, call, current.secrets)
  const key = leaving.length === 0 ? "" : JSON.stringify([name, call.name, leaving, call.toolDigest()])
  const leaks = leaving.length > 0 && !approved.includes(key)
  const isDirty = isActing && current.arrivals > current.cleared
  if (!isDirty && !leaks) return Middleware.allow
  const why = [
    isDirty
      ? `Text from outside is in the conversation (${current.from.join(", ")}), and may have led to this call.`
      : "",
    leaks ? `It could send out what is secret (${leaving.join(", ")}).` : ""
  ]
  const text = `${call.name} ${describeArguments(call.arguments)}\n${why.filter((one) => one !== "").join(" ")}`
  return Middleware.suspend(text, {
    rule: name,
    deciders,
    byPerson: true,
    onDecision: (decision) => {
      if (decision._tag !== "Approve" || decision.always !== true) return Effect.void
      // Content that came in after the person was asked was not looked at.
      const cleared = current.asked[call.id] ?? current.arrivals
      return Effect.andThen(
        isDirty
          ? run.state.update(labels, (now) => ({ ...now, cleared: Math.max(now.cleared, cleared) }))
          : Effect.void,
        leaks ? run.state.set(Approval.always, [key]) : Effect.void
      )
    }
  })
}

const gates = (rules: Rules) =>
  Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const current = yield* run.state.get(labels)
    if (current.arrivals <= current.cleared && current.secrets.length === 0) return calls.map(() => Middleware.allow)
    const approved = yield* run.state.get(Approval.always)
    const answers = calls.map((call) => gateOf(rules, run, call, current, approved))
    const asked = calls.filter(
      ({ id }, index) => answers[index]?._tag === "Suspend" && !Object.hasOwn(current.asked, id)
    )
    if (asked.length > 0) {
      const added = Object.fromEntries(asked.map(({ id }) => [id, current.arrivals]))
      yield* run.state.update(labels, (now) => ({ ...now, asked: { ...added, ...now.asked } }))
    }
    return answers
  })

/** Marks a run by what it begins with: the marks of the run that began it, and results that were there before this. */
const begin = (rules: Rules) =>
  Effect.fnUntraced(function* (run: Run) {
    const outer = yield* Outer
    if (outer !== undefined && run.depth === 0) {
      const { arrivals, from, secrets } = yield* outer.get(labels)
      if (arrivals > 0 || secrets.length > 0) {
        yield* run.state.update(labels, (own) =>
          merge(own, { ...own, arrivals: own.arrivals + (arrivals > 0 ? 1 : 0), from, secrets })
        )
      }
    }
    const { arrivals } = yield* run.state.get(labels)
    if (arrivals > 0) return
    for (const message of run.messages) {
      if (message.role !== "tool") continue
      const { toolName } = message
      const known = run.offered.find((tool) => tool.name === toolName)
      // Nobody here knows what a tool that is gone brought in.
      const tool = { name: toolName, annotations: known?.annotations ?? { openWorld: true } }
      const { isDirty, labels: secrets } = arrivalOf(rules, tool)
      if (isDirty || secrets.length > 0) yield* mark(run.state, toolName, secrets, isDirty)
    }
  })

const namesIn = ({ acts, clearance, harmless, secrets, trusted, untrusted }: Options): ReadonlyArray<string> => [
  ...[untrusted, trusted, acts, harmless].flatMap((list) => list ?? []),
  ...[secrets, clearance].flatMap((by) => Object.keys(by ?? {}))
]

const parts = (options: Options, rules: Rules): Middleware.Parts<never, never, Middleware.AskingGate> => ({
  name,
  inherit: true,
  state: [labels, Approval.always],
  check: (_tools: ReadonlySet<string>, reach: ReadonlySet<string>) =>
    // Tools of servers come later, and have their name with the server's.
    Middleware.unknownTool(
      "labels of trust are for",
      namesIn(options).filter((one) => !one.includes("__")),
      reach
    ),
  beforeAgent: begin(rules),
  gateToolCalls: gates(rules),
  // Tools that the provider runs have answered before anybody here can ask; calls of the same turn may be of their making.
  wrapModelCall: (request, next, run) =>
    Stream.mapArrayEffect(next(request), (turn) => {
      const hosted = turn.find((part) => part._tag === "ToolCallStart" && part.providerExecuted === true)
      return hosted?._tag === "ToolCallStart"
        ? Effect.as(mark(run.state, hosted.name, [], true), turn)
        : Effect.succeed(turn)
    }),
  wrapToolCall: (call, next, run) => {
    const { isDirty, labels: secrets } = arrivalOf(rules, call)
    const work = Effect.provideService(next(call), Outer, run.state)
    // Before the call, so that whatever it writes down on its way is marked too.
    return isDirty || secrets.length > 0 ? Effect.andThen(mark(run.state, call.name, secrets, isDirty), work) : work
  }
})

/**
 * Asks the `Approvals` service while the run waits. An approval with `always` clears the conversation: what had come in
 * when the person was asked is asked about no more.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Middleware.Middleware<never, Approval.Approvals> =>
  Middleware.asking(parts(options, rulesOf(options)))

/**
 * Like {@link make}, but ends the run until somebody has decided.
 *
 * @category constructors
 * @since 0.1.0
 */
export const suspending = (options: Options = {}): Middleware.Suspending =>
  Middleware.suspending(parts(options, rulesOf(options)))

/**
 * Carries marks through files: what a marked run writes is labelled, and whoever reads it is marked, in another thread
 * and another process too. The labels are in a file of the same backend, which agents neither see nor change. Commands
 * go around it: in a marked run they ask, as they are destructive.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Backend.Backend, never, Backend.Backend> = Backend.layer(
  Backend.Backend.use((backend) =>
    Effect.succeed(
      TaintedFiles.labelled(backend, {
        isMarked: Effect.flatMap(CurrentRun, (run) =>
          run === undefined
            ? Effect.undefined
            : Effect.map(run.state.get(labels), ({ arrivals, cleared, secrets }) =>
                arrivals > cleared || secrets.length > 0 ? { isDirty: arrivals > cleared, secrets } : undefined
              )
        ),
        mark: (path, { isDirty, secrets }) =>
          Effect.flatMap(CurrentRun, (run) =>
            run === undefined ? Effect.void : mark(run.state, path, secrets, isDirty)
          )
      })
    )
  )
)
