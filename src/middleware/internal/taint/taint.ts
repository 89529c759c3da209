/** The marks of a conversation, and the gate that asks by them: the shared parts of Taint and HiddenResults. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../../../core/AgentState.ts"
import * as Approval from "../../../core/Approval.ts"
import type { ToolDefinition } from "../../../core/ChatModel.ts"
import * as Middleware from "../../../core/Middleware.ts"
import * as Ruling from "../../../core/Ruling.ts"
import type { Run } from "../../../core/Run.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import type { ToolError } from "../../../core/ToolError.ts"
import type { ToolOutput } from "../../../core/ToolOutput.ts"
import { once } from "../../../support/effect/once.ts"
import { defined } from "../../../support/json/defined.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { sha256Sync } from "../../../support/store/sha256.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine, outside } from "../../../support/text/untrusted.ts"
import * as TaintRules from "./rules.ts"

/** The name of the middleware. */
export const name = "Taint"

/** The marks, as `Taint.Labels` explains them. */
export const Labels = Schema.Struct({
  arrivals: Schema.Finite,
  cleared: Schema.Finite,
  from: Schema.Array(Schema.String),
  secrets: Schema.Array(Schema.String),
  asked: Schema.Record(Schema.String, Schema.Finite),
  described: Schema.optionalKey(Schema.Array(Schema.String))
})
interface Labels extends Schema.Schema.Type<typeof Labels> {}

const none: ReadonlyArray<string> = []

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
      : { ...incoming.asked, ...current.asked },
    ...defined({
      described:
        incoming.described === undefined ? current.described : union(current.described ?? none, incoming.described)
    })
  }
  const isSame =
    merged.arrivals === current.arrivals &&
    merged.cleared === current.cleared &&
    merged.from === current.from &&
    merged.secrets === current.secrets &&
    merged.asked === current.asked &&
    merged.described === current.described
  return isSame ? current : merged
}

/** The slot of the marks. */
export const labels: AgentState.Slot<Labels> = AgentState.slot("taint", {
  schema: Labels,
  initial: { arrivals: 0, cleared: 0, from: [], secrets: [], asked: {} },
  shared: { merge },
  // The sources are unknown, so the conversation counts as marked.
  ifTampered: { arrivals: 1, cleared: 0, from: ["a thread whose signature does not hold"], secrets: [], asked: {} }
})

/** The words of a developer, as `Taint.Options` explains them. */
export interface Options extends TaintRules.Words {
  readonly secrets?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  readonly clearance?: { readonly [tool: string]: ReadonlyArray<string> } | undefined
  readonly except?: ((call: Middleware.PreparedCall) => boolean) | undefined
  readonly deciders?: ReadonlyArray<string> | undefined
}

/** The state of the run above a task in the background, which has a state of its own. */
const Outer = Context.Reference<AgentState.Store | undefined>("effect-deepagents/middleware/Taint/Outer", {
  defaultValue: () => undefined
})

type Tool = TaintRules.RuledTool

/** The way of HiddenResults, in place of marking a conversation by the results of its tools. */
export interface ResultHider {
  /** Hides the result of a call from the model. */
  readonly hide: (
    rules: Rules,
    call: Middleware.PreparedCall,
    work: Effect.Effect<ToolOutput, ToolError>,
    run: Run
  ) => Effect.Effect<ToolOutput, ToolError>
  /** The arguments of each call that neither the user nor a typed field vouches for. */
  readonly targets: (
    rules: Rules,
    run: Run,
    calls: ReadonlyArray<Middleware.PreparedCall>,
    words: () => string
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<string>>>
  /** The calls whose results the model was not shown. */
  readonly hidden: (run: Run) => Effect.Effect<ReadonlySet<string>>
}

/** Options by names as they are compared, worked out once. */
export interface Rules extends TaintRules.Rules {
  readonly secrets: (tool: Tool) => ReadonlyArray<string>
  readonly clearance: (tool: Tool) => ReadonlyArray<string>
  readonly deciders: ReadonlyArray<string> | undefined
}

const rulesOf = (options: Options): Rules => {
  const { clearance, deciders, secrets } = options
  const alike = new Map(Object.entries(secrets ?? {}).map(([tool, its]) => [normaliseName(tool), its]))
  const exact = new Map(Object.entries(clearance ?? {}))
  return {
    ...TaintRules.compile(options),
    secrets: (tool) => secrets?.[tool.name] ?? alike.get(normaliseName(tool.name)) ?? none,
    clearance: (tool) => (TaintRules.isNamed(exact, tool) ? (exact.get(tool.name) ?? none) : none),
    deciders
  }
}

/** Gives the marks and labels that the results of a tool bring in. */
const arrivalOf = (rules: Rules, tool: Tool) => ({
  isDirty: TaintRules.isSource(rules, tool),
  labels: rules.secrets(tool)
})

/** Says which of these labels calls of a tool would send out without clearance. */
const leavingBy = (rules: Rules, tool: Tool, secrets: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isGoingOut =
    TaintRules.isOutside(tool) || (TaintRules.isStrictOn(rules, tool) && tool.annotations.openWorld !== false)
  if (secrets.length === 0 || !isGoingOut) return none
  const cleared = rules.clearance(tool)
  return secrets.filter((label) => !cleared.includes(label))
}

/** Marks a conversation before outside text arrives. */
export const mark = (state: AgentState.Store, from: string, secrets: ReadonlyArray<string>, isDirty: boolean) =>
  state.update(labels, (current) => ({
    ...current,
    arrivals: current.arrivals + (isDirty ? 1 : 0),
    from: isDirty ? union(current.from, [from]).slice(-20) : current.from,
    secrets: union(current.secrets, secrets)
  }))

const rulingOf = (
  rules: Rules,
  run: Run,
  call: Middleware.PreparedCall,
  current: Labels,
  approved: ReadonlyArray<string>,
  words: () => string,
  targets: ReadonlyArray<string>
) => {
  const { deciders } = rules
  const leaving = leavingBy(rules, call, current.secrets)
  const key = leaving.length === 0 ? "" : JSON.stringify([name, call.name, leaving, call.toolDigest()])
  const leaks = leaving.length > 0 && !approved.includes(key)
  const isMarked = current.arrivals > current.cleared
  const isActing = isMarked && TaintRules.isDeed(rules, call)
  const strange = isMarked && !isActing ? TaintRules.strangeAddresses(rules, call, words) : none
  const isDirty = isActing || strange.length > 0
  if (!isDirty && !leaks && targets.length === 0) return undefined
  const why = [
    targets.length > 0
      ? `Neither the user nor a typed field said: ${targets.map((one) => cut(oneLine(one), 200)).join(", ")}.`
      : "",
    isDirty
      ? `Text from outside is in the conversation (${current.from.join(", ")}), and may have led to this call.`
      : "",
    strange.length > 0
      ? `It would go to what nobody named: ${strange.map((one) => cut(oneLine(one), 200)).join(", ")}.`
      : "",
    leaks ? `It could send out what is secret (${leaving.join(", ")}).` : ""
  ]
  return Ruling.ask(name, {
    description: `${call.name} ${describeArguments(call.arguments)}`,
    reason: why.filter((one) => one !== "").join(" "),
    deciders,
    byPerson: true,
    onDecision: (decision) => {
      if (decision._tag !== "Approve" || decision.always !== true) return Effect.void
      // Content that came in after the person was asked was not looked at.
      const cleared = valueAt(current.asked, call.id) ?? current.arrivals
      return Effect.andThen(
        isDirty
          ? run.state.update(labels, (now) => ({ ...now, cleared: Math.max(now.cleared, cleared) }))
          : Effect.void,
        leaks ? run.state.set(Approval.always, [key]) : Effect.void
      )
    }
  })
}

/** The servers of the offered tools, each with a digest of its descriptions. */
const describedIn = (offered: ReadonlyArray<ToolDefinition>): ReadonlyArray<readonly [server: string, key: string]> => {
  const by = Map.groupBy(
    offered.filter(TaintRules.isServers),
    ({ annotations, name }) => annotations.server ?? name.slice(0, name.indexOf("__"))
  )
  return [...by].map(([server, its]) => {
    const texts = its.map(({ description, name, parameters }) => [name, description, parameters])
    return [server, `${server} ${sha256Sync(canonical(texts)).slice(0, 16)}`]
  })
}

/** Marks a conversation in which the model has read descriptions of tools that nobody vouches for, once for each. */
const describing = (rules: Rules) => {
  const descriptions = new WeakMap<ReadonlyArray<ToolDefinition>, ReturnType<typeof describedIn>>()
  return (run: Run, current: Labels): Effect.Effect<Labels> => {
    const all = descriptions.get(run.offered) ?? describedIn(run.offered)
    descriptions.set(run.offered, all)
    const fresh = all.filter(([server, key]) => !rules.servers.has(server) && current.described?.includes(key) !== true)
    if (fresh.length === 0) return Effect.succeed(current)
    const from = fresh.map(([server]) => `the tools of the server ${oneLine(server)}`)
    const marked = run.state.update(labels, (now) => ({
      ...now,
      arrivals: now.arrivals + 1,
      from: union(now.from, from).slice(-20),
      described: union(
        now.described ?? none,
        fresh.map(([, key]) => key)
      )
    }))
    return Effect.andThen(marked, run.state.get(labels))
  }
}

const rulings = (rules: Rules, hiding: ResultHider | undefined, except: Options["except"]) => {
  const describe = describing(rules)
  return Effect.fnUntraced(function* (run: Run, calls: ReadonlyArray<Middleware.PreparedCall>) {
    const current = yield* describe(run, yield* run.state.get(labels))
    const isClean = current.arrivals <= current.cleared && current.secrets.length === 0
    if (isClean && hiding === undefined) return calls.map(() => undefined)
    const outer = yield* Outer
    const words = once(() => TaintRules.wordsOf(run, outer))
    const approved = yield* run.state.get(Approval.always)
    const targets = hiding === undefined ? [] : yield* hiding.targets(rules, run, calls, words)
    const answers = calls.map((call, index) =>
      except?.(call) === true ? undefined : rulingOf(rules, run, call, current, approved, words, targets[index] ?? none)
    )
    const newAsks = calls.filter(({ id }, index) => answers[index]?._tag === "Ask" && !Object.hasOwn(current.asked, id))
    if (newAsks.length > 0) {
      const added = Object.fromEntries(newAsks.map(({ id }) => [id, current.arrivals]))
      yield* run.state.update(labels, (now) => ({ ...now, asked: { ...added, ...now.asked } }))
    }
    return answers
  })
}

/** Marks a run by its start: the marks of the run that began it, and the results in its history. */
const begin = (rules: Rules, hiding: ResultHider | undefined) =>
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
    const last = run.messages.at(-1)
    const isOutside = last?.role === "human" && last.source?.startsWith(outside) === true
    // Also in a thread that a person has cleared: this input is new.
    if (isOutside) yield* mark(run.state, last.source ?? outside, [], true)
    const { arrivals } = yield* run.state.get(labels)
    if (arrivals > 0) return
    const hidden = hiding === undefined ? undefined : yield* hiding.hidden(run)
    for (const message of run.messages) {
      if (message.role !== "tool" || hidden?.has(message.toolCallId) === true) continue
      const { toolName } = message
      const definition = run.offered.find((tool) => tool.name === toolName)
      // Nobody knows the effects of a tool that is gone.
      const tool = { name: toolName, annotations: definition?.annotations ?? { openWorld: true } }
      const { isDirty, labels: secrets } = arrivalOf(rules, tool)
      if (isDirty || secrets.length > 0) yield* mark(run.state, toolName, secrets, isDirty)
    }
  })

/** The parts of the middleware. */
export const parts = (options: Options, hiding?: ResultHider): Middleware.Parts => {
  const rules = rulesOf(options)
  return {
    name,
    inherit: true,
    state: [labels],
    check: (_tools: ReadonlySet<string>, reach: ReadonlySet<string>) =>
      TaintRules.misnamed(
        options,
        [options.secrets, options.clearance].flatMap((by) => Object.keys(by ?? {})),
        (names, tools) => Middleware.unknownTool("labels of trust are for", names, tools),
        reach
      ),
    beforeAgent: begin(rules, hiding),
    rulings: rulings(rules, hiding, options.except),
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
      const isMarking = isDirty && hiding === undefined
      // It precedes the call, so that everything that the call writes is marked too.
      const marked =
        isMarking || secrets.length > 0 ? Effect.andThen(mark(run.state, call.name, secrets, isMarking), work) : work
      return hiding === undefined ? marked : hiding.hide(rules, call, marked, run)
    }
  }
}
