/**
 * Keeps the tools of a conversation as in the provider's cache, and announces later changes in messages.
 *
 * Tools precede the conversation, so a changed tool invalidates all of the cache. Therefore the first tools stay, and a
 * message at the end announces the difference. Both are in the state: a resumed run sends the same bytes. When the
 * history before an announcement changes (a summary replaced it), the cache is lost anyway, and the current tools are
 * sent. A provider that takes changes of the tools inside of a conversation gets those instead of messages.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../../core/AgentState.ts"
import type { ModelRequest, Service, ToolChange, ToolDefinition, TurnPart } from "../../core/ChatModel.ts"
import { isObject, JsonObject } from "../../core/Json.ts"
import * as Message from "../../core/Message.ts"
import type { ModelError } from "../../core/ModelError.ts"
import type { Run } from "../../core/Run.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import * as Tool from "../../core/Tool.ts"
import type { ToolCall } from "../../core/ToolCall.ts"
import * as ToolError from "../../core/ToolError.ts"
import * as Attached from "../../support/effect/attached.ts"
import { once } from "../../support/effect/once.ts"
import { sha256Sync } from "../../support/store/sha256.ts"

/** The name of the tool that calls later tools. */
const callTool = "call_tool"

/** The `source` of the announcements. */
const source = "tools"

/** The most characters of announcements before sending the current tools is cheaper. */
const most = 65_536

const Shown = Schema.Struct({ name: Schema.String, description: Schema.String, parameters: JsonObject })

const ToolHistory = Schema.Struct({
  shown: Schema.Array(Shown),
  /** Announced differences: the digest of a tool, or "" for a removed tool. */
  told: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  notices: Schema.Array(
    Schema.Struct({
      after: Schema.String,
      text: Schema.String,
      /** The same as data. Missing in a state of an earlier version. */
      changes: Schema.optionalKey(
        Schema.Array(
          Schema.Struct({
            add: Schema.Array(Shown),
            again: Schema.Array(Schema.String),
            remove: Schema.Array(Schema.String)
          })
        )
      )
    })
  )
})
type ToolHistory = typeof ToolHistory.Type
type Notice = ToolHistory["notices"][number]
type Change = NonNullable<Notice["changes"]>[number]

/** The tools of a conversation, and the announced changes. */
export const slot = AgentState.slot("stableTools", {
  schema: ToolHistory,
  initial: { shown: [], told: [], notices: [] }
})

/** This tool only runs for a missing tool: other calls are translated before. */
export const tool: () => Tool.Tool = once(() =>
  Tool.dynamic(callTool, {
    description: "Calls a tool that you were told of in a notice, and that is not among these tools.",
    parameters: {
      type: "object",
      properties: {
        name: { type: "string", description: "The name of the tool." },
        arguments: { type: "object", description: "Its arguments, as its parameters say." }
      },
      required: ["name", "arguments"]
    },
    execute: ({ name }) => Effect.fail(ToolError.make(`There is no tool ${JSON.stringify(name)} now.`))
  })
)

const digests = new WeakMap<object, string>()

const digestOf = (one: ToolHistory["shown"][number]): string => {
  const cachedDigest = digests.get(one)
  if (cachedDigest !== undefined) return cachedDigest
  const digest = sha256Sync(canonical({ description: one.description, parameters: one.parameters })).slice(0, 32)
  digests.set(one, digest)
  return digest
}

/** The new or changed tools, and the removed ones. */
const differences = (
  originals: ToolHistory["shown"],
  tools: ReadonlyArray<ToolDefinition>
): ReadonlyMap<string, string> => {
  const before = new Map(originals.map((one) => [one.name, one]))
  const different = new Map<string, string>()
  for (const one of tools) {
    const was = before.get(one.name)
    if (was === undefined || digestOf(was) !== digestOf(one)) different.set(one.name, digestOf(one))
    before.delete(one.name)
  }
  // It calls only allowed tools, even if its own definition changes.
  before.delete(callTool)
  for (const name of before.keys()) different.set(name, "")
  return different
}

/** The changes since the last announcement. */
const changesSince = (
  told: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
  tools: ReadonlyArray<ToolDefinition>
): Change => {
  const there = new Map(tools.map((one) => [one.name, one]))
  const names = [...new Set([...told.keys(), ...now.keys()])].filter((name) => told.get(name) !== now.get(name))
  return {
    add: names.flatMap((name) => {
      const one = now.get(name) === undefined ? undefined : there.get(name)
      return one === undefined ? [] : [{ name, description: one.description, parameters: one.parameters }]
    }),
    again: names.filter((name) => now.get(name) === undefined && there.has(name)),
    remove: names.filter((name) => !there.has(name))
  }
}

/** Formats changes. A tool is one line of JSON, so that none can pass for another line. */
const tell = ({ add, again, remove }: Change): string =>
  [
    "The tools have changed. The program that you run in says so, not the user.",
    ...(add.length === 0 ? [] : [`You can call these, by ${callTool}:`, ...add.map((one) => JSON.stringify(one))]),
    ...(again.length === 0 ? [] : [`You can call these again, as they were first described: ${again.join(", ")}.`]),
    ...(remove.length === 0 ? [] : [`You can't call these any more: ${remove.join(", ")}.`])
  ].join("\n")

/** Names that every provider takes as they are. */
const isPlain = (name: string): boolean => /^[\w-]{1,64}$/.test(name)

const changesCache = new WeakMap<Notice, ReadonlyArray<ToolChange>>()

/** An announcement as changes for the provider. `undefined` if it has no data, or its message is gone. */
const changesIn = (notice: Notice, messages: ReadonlyArray<Message.Message>): ReadonlyArray<ToolChange> | undefined => {
  const cached = changesCache.get(notice)
  if (cached !== undefined && messages[cached[0]?.after ?? -1]?.id === notice.after) return cached
  if (notice.changes?.every(({ add }) => add.every(({ name }) => isPlain(name))) !== true) return undefined
  const after = messages.findIndex(({ id }) => id === notice.after)
  if (after < 0) return undefined
  const all = notice.changes.map(({ add, ...change }) => ({
    ...change,
    after,
    add: add.map((one) => ({ ...one, annotations: {} }))
  }))
  changesCache.set(notice, all)
  return all
}

/** All announcements as changes, if each can be one. */
const changesOf = (
  { notices }: ToolHistory,
  messages: ReadonlyArray<Message.Message>
): ReadonlyArray<ToolChange> | undefined => {
  const all = notices.map((notice) => changesIn(notice, messages))
  return all.every((one) => one !== undefined) ? all.flat() : undefined
}

/** A history as sent: with the announcements, and with the calls as the model wrote them. It grows with the history. */
interface View {
  readonly record: ToolHistory
  readonly names: ReadonlySet<string>
  readonly after: ReadonlyMap<string, string>
  list: ReadonlyArray<Message.Message>
  readonly of: Array<Message.Message>
  readonly messages: Array<Message.Message>
  /** The number of placed announcements. */
  count: number
  isSame: boolean
}

const fresh = (record: ToolHistory): View => ({
  record,
  names: new Set(record.shown.map((one) => one.name)),
  after: new Map(record.notices.map((notice) => [notice.after, notice.text])),
  list: [],
  of: [],
  messages: [],
  count: 0,
  isSame: true
})

/** A message as the model wrote or read it: later tools are called through `call_tool`. */
const asWritten = (names: ReadonlySet<string>, message: Message.Message): Message.Message => {
  if (message.role === "tool") return names.has(message.toolName) ? message : { ...message, toolName: callTool }
  if (message.role !== "ai" || message.toolCalls.every(({ name }) => names.has(name))) return message
  const toolCalls = message.toolCalls.map((call) =>
    names.has(call.name) ? call : { ...call, name: callTool, arguments: { name: call.name, arguments: call.arguments } }
  )
  return { ...message, toolCalls }
}

const extend = (view: View, messages: ReadonlyArray<Message.Message>): void => {
  view.list = messages
  for (const message of messages.slice(view.of.length)) {
    view.of.push(message)
    const copy = asWritten(view.names, message)
    view.messages.push(copy)
    view.isSame &&= copy === message
    const text = view.after.get(message.id)
    if (text === undefined) continue
    view.messages.push(Message.human(text, { id: `${message.id}-tools`, source }))
    view.count++
    view.isSame = false
  }
}

const beginsWith = (messages: ReadonlyArray<Message.Message>, view: View): boolean =>
  messages.length >= view.of.length &&
  // A run's own list only grows.
  (messages === view.list || view.of.every((message, index) => message === messages[index]))

/** Translates a call of `call_tool` to the call of its target. */
const targetOf = (tools: ReadonlyArray<ToolDefinition>, call: ToolCall): ToolCall => {
  const { arguments: args, name } = call.arguments
  if (call.name !== callTool || typeof name !== "string" || name === callTool || !isObject(args)) return call
  return tools.some((one) => one.name === name && one.hidden !== true) ? { ...call, name, arguments: args } : call
}

const translated =
  (tools: ReadonlyArray<ToolDefinition>) =>
  (part: TurnPart): TurnPart =>
    part._tag === "TurnDone" && part.message.toolCalls.some(({ name }) => name === callTool)
      ? {
          ...part,
          message: { ...part.message, toolCalls: part.message.toolCalls.map((call) => targetOf(tools, call)) }
        }
      : part

/** Derived data of one run. */
interface RunTools {
  tools: ReadonlyArray<ToolDefinition> | undefined
  view: View
  definitions: ReadonlyArray<ToolDefinition>
}

const takesChanges = (model: Service | undefined): boolean => model?.abilities?.includes("toolChanges") === true

/** Makes a function that translates requests before they are sent, and turns when they return. */
export const make = () => {
  const runs = Attached.make<Run, RunTools>()
  /** Models that refused changes: another address, an older model. */
  const refusing = new WeakSet<Service>()

  const viewed = (cache: RunTools, record: ToolHistory, messages: ReadonlyArray<Message.Message>): View => {
    if (cache.view.record !== record || !beginsWith(messages, cache.view)) {
      if (cache.view.record.shown !== record.shown)
        cache.definitions = record.shown.map((one) => ({ ...one, annotations: {} }))
      cache.view = fresh(record)
    }
    extend(cache.view, messages)
    return cache.view
  }

  const keep = Effect.fnUntraced(function* (run: Run, cache: RunTools, request: ModelRequest) {
    const { messages } = request
    const tools = request.tools.filter(({ hidden }) => hidden !== true)
    const record = yield* run.state.get(slot)
    const isBegun = messages.some(({ role }) => role === "ai")
    const isWhole = isBegun && viewed(cache, record, messages).count === record.notices.length
    const afresh: ToolHistory = {
      shown: tools.map(({ description, name, parameters }) => ({ name, description, parameters })),
      told: [],
      notices: []
    }
    const isShown = isWhole && record.shown.some(({ name }) => name === callTool)
    if (!isShown) return yield* run.state.set(slot, afresh)
    if (cache.tools === request.tools) return
    cache.tools = request.tools
    const lastDifferences = new Map(record.told)
    const now = differences(record.shown, tools)
    if (now.size === lastDifferences.size && [...now].every(([name, digest]) => lastDifferences.get(name) === digest))
      return
    const last = run.messages.at(-1)
    const data = changesSince(lastDifferences, now, tools)
    const text = tell(data)
    const length = record.notices.reduce((sum, notice) => sum + notice.text.length, text.length)
    const isTold = length <= most && last !== undefined && messages.findLast(({ id }) => id === last.id) !== undefined
    if (!isTold) return yield* run.state.set(slot, afresh)
    // Two changes behind one message are one announcement.
    const before = record.notices.at(-1)
    const notices =
      before?.after === last.id
        ? record.notices.with(-1, {
            after: last.id,
            text: `${before.text}\n\n${text}`,
            ...(before.changes === undefined ? {} : { changes: [...before.changes, data] })
          })
        : [...record.notices, { after: last.id, text, changes: [data] }]
    yield* run.state.set(slot, { shown: record.shown, told: [...now], notices })
  })

  return (
    request: ModelRequest,
    next: (request: ModelRequest) => Stream.Stream<TurnPart, ModelError>,
    run: Run
  ): Stream.Stream<TurnPart, ModelError> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const before = yield* run.state.get(slot)
        const isOn = [...before.shown, ...request.tools].some(({ name }) => name === callTool)
        if (!isOn) return next(request)
        const cache = runs.get(run) ?? { tools: undefined, view: fresh(slot.initial), definitions: [] }
        runs.set(run, cache)
        if (request.toolChoice === "auto") yield* keep(run, cache, request)
        const record = yield* run.state.get(slot)
        const view = viewed(cache, record, request.messages)
        const stableRequest = {
          ...request,
          messages: view.isSame ? request.messages : view.messages,
          // The marks count other messages.
          cacheHints: view.isSame ? request.cacheHints : [],
          // The tool choice expresses a last turn without tools, or with only one.
          tools:
            request.toolChoice === "auto" || request.tools.every(({ name }) => view.names.has(name))
              ? cache.definitions
              : request.tools,
          callable: request.tools
        }
        const described = Stream.map(next(stableRequest), translated(request.tools))
        const model = request.session?.model ?? run.model
        if (model === undefined || !takesChanges(model) || refusing.has(model)) return described
        const toolChanges = record.notices.length === 0 ? undefined : changesOf(record, request.messages)
        if (toolChanges === undefined) return described
        let isBegun = false
        const { callable, tools } = stableRequest
        if (tools !== cache.definitions) return described
        const native = Stream.map(next({ ...request, tools, callable, toolChanges }), (part) => {
          isBegun ||= part._tag !== "Warning"
          return translated(request.tools)(part)
        })
        return Stream.catch(native, (error) => {
          if (isBegun || error.reason._tag !== "InvalidRequest") return Stream.fail(error)
          refusing.add(model)
          return described
        })
      })
    )
}
