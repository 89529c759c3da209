/** Random runs of agents that clients of all protocols must rebuild, live and from the store. */
import { Effect, Exit, Layer, Schema, Scope, Stream } from "effect"
import {
  Agent,
  AgentEvent,
  Approval,
  ChatModel,
  Content,
  Message,
  type ModelError,
  Sources,
  Tool,
  ToolOutput
} from "effect-deepagents"
import { HumanInTheLoop, Todos } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"

const parameters = { n: Schema.Finite }

const add = Tool.make("add", {
  description: "Adds",
  parameters,
  annotations: { idempotent: true },
  execute: ({ n }) => Effect.succeed(`sum ${n}`)
})
const fail = Tool.make("fail", { description: "Fails", parameters, execute: ({ n }) => Effect.fail(`no ${n}`) })
const pay = Tool.make("pay", { description: "Pays", parameters, execute: ({ n }) => Effect.succeed(`paid ${n}`) })
const cite = Tool.make("cite", {
  description: "Finds",
  parameters,
  annotations: { idempotent: true },
  execute: ({ n }) =>
    Effect.succeed(
      ToolOutput.make(`found ${n}`, {
        sources: [Sources.make({ url: `https://example.com/${n % 3}`, title: `Page ${n % 3}` })]
      })
    )
})
const asks = HumanInTheLoop.make({ tools: { pay: true } })
const grandkid = Agent.make({ name: "grandkid", prompt: "You are small.", tools: [add] })
const delegate = <O, R>(agent: Agent.Agent<O, ModelError.ModelError, R>, name: string) =>
  Tool.make(name, {
    description: "Delegates",
    parameters,
    annotations: { resumable: true },
    execute: ({ n }) => Effect.map(Agent.delegate(agent, `${agent.name} ${n}`), ({ text }) => text).pipe(Effect.orDie)
  })
const kid = Agent.make({
  name: "kid",
  prompt: "You are a kid.",
  tools: [add, pay, delegate(grandkid, "deep")],
  middleware: [asks]
})

const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [add, fail, pay, cite, delegate(kid, "ask")],
  middleware: [asks, Todos.make()]
})

type Name = "add" | "fail" | "pay" | "cite" | "plan" | "ask" | "nothing" | "broken"

/** A round: its calls, whether it thinks, and how often it is asked for again. */
interface Round {
  readonly calls: ReadonlyArray<Name>
  readonly reasoning: boolean
  readonly text: boolean
  readonly restarts: boolean
}

/** A run, by its rounds, its end, and whether each request is approved. */
export interface Story {
  readonly rounds: ReadonlyArray<Round>
  readonly end: "text" | "picture" | "failure" | "interruption"
  readonly decisions: ReadonlyArray<boolean>
}

export const story: fc.Arbitrary<Story> = fc.record({
  rounds: fc.array(
    fc.record({
      calls: fc.array(fc.constantFrom<Name>("add", "fail", "pay", "cite", "plan", "ask", "nothing", "broken"), {
        minLength: 1,
        maxLength: 3
      }),
      reasoning: fc.boolean(),
      text: fc.boolean(),
      restarts: fc.boolean()
    }),
    { maxLength: 3 }
  ),
  end: fc.constantFrom("text", "picture", "failure", "interruption"),
  decisions: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 })
})

const words = { chunkSize: 5, usage: { inputTokens: 7, outputTokens: 3 } }

const picture = Message.ai([
  Content.reasoning("Look. "),
  Content.text("Here it is: "),
  Content.image({ base64: "iVBORw0KGgo=", mimeType: "image/png" }),
  Content.text("done.")
])

const endOf = (end: Story["end"]): TestChatModel.Turn =>
  end === "text"
    ? TestChatModel.text("All is done. 🙂", { ...words, reasoning: "So it ends." })
    : end === "picture"
      ? TestChatModel.message(picture, words)
      : end === "failure"
        ? TestChatModel.fail({ _tag: "InvalidRequest" }, { after: "I was about" })
        : TestChatModel.hangAfter("I am still")

const modelOf = ({ end, rounds }: Story) => {
  const model = TestChatModel.reactive(({ messages }) => {
    const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
    const round = since.filter(({ role }) => role === "ai").length
    const said = since[0] === undefined ? "" : Message.text(since[0])
    if (said.startsWith("grandkid")) {
      return round === 0 ? TestChatModel.calls([{ name: "add", arguments: { n: 800 } }], words) : "grandkid done"
    }
    if (said.startsWith("kid")) {
      const calls = [
        { name: "pay", arguments: { n: 900 } },
        { name: "deep", arguments: { n: 901 } }
      ]
      return round === 0 ? TestChatModel.calls(calls, words) : TestChatModel.text("kid done", words)
    }
    const now = rounds[round]
    if (now === undefined) return endOf(end)
    const calls = now.calls.map((name, index) =>
      name === "broken"
        ? { name: "add", raw: "{" }
        : name === "plan"
          ? { name: "write_todos", arguments: { todos: [{ content: `Step ${round}.${index}`, status: "pending" }] } }
          : { name, arguments: { n: round * 10 + index } }
    )
    return TestChatModel.calls(calls, {
      ...words,
      ...(now.text ? { text: `This is round ${round}. ` } : {}),
      ...(now.reasoning ? { reasoning: `I think of ${round}.` } : {})
    })
  })
  return Layer.effect(ChatModel.ChatModel, Effect.map(ChatModel.ChatModel, restarting(rounds))).pipe(
    Layer.provide(model)
  )
}

/** Repeats a part of a turn in vain, if the story says so. */
const restarting =
  (rounds: ReadonlyArray<Round>) =>
  (model: ChatModel.Service): ChatModel.Service => ({
    ...model,
    makeSession: Effect.map(model.makeSession, (session) => ({
      nextTurn: (request) => {
        const round = request.messages.filter(({ role }) => role === "ai").length
        const turn = session.nextTurn(request)
        const isVain = rounds[round]?.restarts === true
        return isVain
          ? Stream.concat(
              Stream.make<ReadonlyArray<ChatModel.TurnPart>>(
                { _tag: "ReasoningDelta", text: "Hm" },
                { _tag: "TextDelta", text: "Wro" },
                { _tag: "ToolCallStart", id: "vain", name: "add" },
                { _tag: "ToolCallDelta", id: "vain", delta: '{"n"' },
                { _tag: "TurnRestarted", reason: "Overloaded" }
              ),
              turn
            )
          : turn
      }
    }))
  })

const ada: Server.Principal = { tenant: "acme", id: "ada", roles: [] }

export const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

/** Builds a server on the store of the test, with a log of its own. */
const newServer = (one: Story) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const layer = Layer.fresh(Server.layer({ helper })).pipe(Layer.provide(Layer.fresh(modelOf(one))))
    const context = yield* Layer.buildWithScope(layer, scope)
    return { context, close: Scope.close(scope, Exit.void) }
  })

/** Runs of a story. */
export const serverOf = (one: Story) => Server.layer({ helper }).pipe(Layer.provide(Layer.fresh(modelOf(one))))

const eventsIn = (frames: Iterable<Server.Frame>): ReadonlyArray<AgentEvent.AgentEvent> =>
  [...frames].flatMap((frame) => (frame._tag === "Event" ? [frame.event] : []))

/** A client's view until a run ended or waited, and the store's. */
export interface Stage {
  readonly told: ReadonlyArray<AgentEvent.AgentEvent>
  readonly live: ReadonlyArray<AgentEvent.AgentEvent>
  readonly stored: ReadonlyArray<AgentEvent.AgentEvent>
  readonly pending: ReadonlyArray<Approval.Request>
}

/** Plays a story to its end, and looks at it as a client does and from the store, each time that nothing is at work. */
export const play = Effect.fnUntraced(function* (one: Story) {
  const tenant = yield* Server.tenant(ada)
  const thread = yield* tenant.thread("t")
  const { close, context } = yield* newServer(one)
  const stages: Array<Stage> = []
  const stored = Effect.gen(function* () {
    const other = yield* newServer(one)
    const frames = yield* Effect.provideContext(
      Effect.flatMap(Server.Runs, (runs) => Stream.runCollect(runs.observe(thread))),
      other.context
    )
    yield* other.close
    return eventsIn(frames)
  })
  yield* Effect.gen(function* () {
    const runs = yield* Server.Runs
    let { position } = yield* runs.start(thread, { agent: "helper", input: "go", id: "1" })
    let told: ReadonlyArray<AgentEvent.AgentEvent> = []
    for (let index = 0; ; index++) {
      const frames = yield* Stream.runCollect(
        Stream.tap(runs.observe(thread, { after: position }), (frame) =>
          frame._tag === "Event" && frame.event._tag === "TextDelta" && frame.event.text === "I am still"
            ? runs.cancel(thread)
            : Effect.void
        )
      )
      const live = eventsIn(frames)
      const { pending, state } = yield* runs.status(thread)
      stages.push({ told, live, stored: yield* stored, pending })
      told = [...told, ...live]
      if (state !== "waiting") return
      const decisions = pending.map((request, at) =>
        one.decisions[(index + at) % one.decisions.length] === true
          ? Approval.approve(request)
          : Approval.reject(request, "too much")
      )
      position = (yield* runs.decide(thread, decisions)).position
    }
  }).pipe(Effect.provideContext(context))
  yield* close
  return stages
})

/** The transcript of events that every protocol must tell. */
export const transcript = (events: ReadonlyArray<AgentEvent.AgentEvent>) => {
  const messages = AgentEvent.transcript(events.map((event) => ({ ...event, runId: event.path.join("/") })))
  const ai = messages.filter((message) => message.role === "ai")
  const tool = messages.filter((message) => message.role === "tool")
  return {
    text: ai.map((message) => Message.text(message)).join(""),
    reasoning: ai.map((message) => Message.reasoning(message) ?? "").join(""),
    calls: ai.flatMap(({ toolCalls }) => toolCalls.map(({ arguments: args, id, name }) => [id, name, args] as const)),
    results: tool.map((message) => [message.toolCallId, Message.text(message)] as const)
  }
}
