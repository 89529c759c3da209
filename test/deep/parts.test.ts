import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { Agent, Approval, type Backend, type ChatModel, Middleware } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent, Facts } from "effect-deepagents/deep"
import {
  BackgroundSubagents,
  BackgroundTasks,
  Filesystem,
  HumanInTheLoop,
  Memory,
  ModelRetry,
  ModelTimeout,
  PromptCaching,
  Rubric,
  Skills,
  Subagents,
  Summarization,
  Todos
} from "effect-deepagents/middleware"
import { MemoryStore, Storage } from "effect-deepagents/stores"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const worker = Agent.make({ name: "worker", description: "works", prompt: "You work." })

/** A deep agent with all parts of the stack. */
const deep = (middleware: ReadonlyArray<Middleware.Middleware>) =>
  DeepAgent.make({
    name: "deep",
    prompt: "Mine.",
    profiles: [{ promptSuffix: "Suffix." }],
    memory: ["/AGENTS.md"],
    facts: { namespace: "n", extract: false },
    skills: ["/skills"],
    backgroundSubagents: [worker],
    approvals: { tools: { delete_file: true } },
    middleware
  })

const layers = (turns: Parameters<typeof TestChatModel.script>[0]) =>
  Layer.mergeAll(
    TestChatModel.script(turns),
    Layer.provide(MemoryStore.layer, Storage.layerMemory),
    BackgroundTasks.layer(),
    Layer.succeed(Approval.Approvals, {
      decide: (request) => Effect.succeed(Approval.approve(request))
    }),
    MemoryBackend.layer({
      files: {
        "/AGENTS.md": "Be brief.",
        "/skills/blog/SKILL.md": "---\nname: blog\ndescription: Writes a blog.\n---\nWrite."
      }
    })
  )

/** Signs of a part in a request of the model. */
const signs: Partial<Record<(typeof DeepAgent.parts)[number], (request: ChatModel.ModelRequest) => boolean>> = {
  Harness: ({ systemPrompt }) => systemPrompt.includes("Suffix."),
  Todos: ({ tools }) => tools.some(({ name }) => name === "write_todos"),
  Skills: ({ tools }) => tools.some(({ name }) => name === "use_skill"),
  Subagents: ({ tools }) => tools.some(({ name }) => name === "task"),
  BackgroundSubagents: ({ tools }) => tools.some(({ name }) => name === "start_task"),
  Summarization: ({ tools }) => tools.some(({ name }) => name === "compact_conversation"),
  PromptCaching: ({ cacheHints }) => cacheHints.length > 0,
  Memory: ({ systemPrompt }) => systemPrompt.includes("Be brief.")
}

const requestOf = (middleware: ReadonlyArray<Middleware.Middleware>) =>
  Effect.gen(function* () {
    yield* Agent.run(deep(middleware), "go")
    const [request] = yield* TestChatModel.requests
    assert.isDefined(request)
    return request
  }).pipe(Effect.provide(layers(["done"])))

describe("the parts of a deep agent", () => {
  it.effect("agents that run at once have the same ones, and know nothing of each other", () =>
    Effect.gen(function* () {
      const answers = yield* Effect.forEach(
        Array.from({ length: 4 }, (_, index) => index),
        (index) =>
          Effect.gen(function* () {
            const agent = DeepAgent.make({ name: `deep ${index}`, prompt: "" })
            const events = yield* AgentTest.events(agent, "go")
            const told = events.flatMap((event) => (event._tag === "Warning" ? [event.code] : []))
            const lists = events.flatMap((event) =>
              event._tag === "StateChanged" && event.slot === "todos" ? [event.value] : []
            )
            return { told, todos: lists.at(-1) }
          }).pipe(
            Effect.provide([
              MemoryBackend.layer(),
              TestChatModel.script([
                ...[0, 1, 2].map((round) =>
                  TestChatModel.calls(
                    [0, 1].map((n) => ({
                      name: "write_todos",
                      arguments: { merge: true, todos: [{ content: `${index}.${round}.${n}`, status: "pending" }] }
                    })),
                    // Of the first two, requests become too long.
                    { text: index < 2 ? "lorem ipsum ".repeat(5_000) : "" }
                  )
                ),
                ...(index < 2 ? ["It was long."] : []),
                "done"
              ])
            ])
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        answers,
        answers.map((_, index) => ({
          told: index < 2 ? ["summarization-window"] : [],
          todos: [0, 1, 2].flatMap((round) =>
            [0, 1].map((n) => ({ id: `${2 * round + n + 1}`, content: `${index}.${round}.${n}`, status: "pending" }))
          )
        }))
      )
    })
  )

  for (const part of DeepAgent.parts) {
    it.effect(`${part}: one of the user's with its name takes its place, and leaves the others`, () =>
      Effect.gen(function* () {
        const before = yield* requestOf([])
        const after = yield* requestOf([Middleware.make({ name: part })])
        for (const [other, shows] of Object.entries(signs)) {
          assert.isTrue(shows(before), other)
          assert.strictEqual(shows(after), other !== part, other)
        }
      })
    )
  }

  it.effect("all of them at once: each stands where its part stood, and nothing of the parts is left", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const spy = (name: string) =>
        Middleware.make({ name, beforeAgent: () => Effect.sync(() => void order.push(name)) })
      const request = yield* requestOf([spy("own"), ...DeepAgent.parts.map(spy).toReversed()])
      const parts = [...DeepAgent.parts]
      assert.deepStrictEqual(order, [...parts.slice(0, 7), "own", ...parts.slice(7)])
      assert.strictEqual(request.systemPrompt, "Mine.")
      assert.deepStrictEqual(request.tools.map(({ name }) => name).toSorted(), [
        "delete_file",
        "edit_file",
        "glob",
        "grep",
        "ls",
        "move_file",
        "read_file",
        "write_file"
      ])
      assert.deepStrictEqual(request.cacheHints, [])
    })
  )

  it.effect("the module of a part with other options takes its place", () =>
    Effect.gen(function* () {
      const once = ModelRetry.make({ schedule: Schedule.recurs(0) })
      const agent = DeepAgent.make({ name: "deep", prompt: "p", middleware: [once] })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert.strictEqual(error._tag, "ModelError")
    }).pipe(Effect.provide(layers([TestChatModel.fail({ _tag: "Transport" })])))
  )

  for (const [near, part] of [
    ["memory", "Memory"],
    ["skills", "Skills"],
    ["Memories", undefined],
    ["model-retry", "ModelRetry"],
    ["model_timeout", "ModelTimeout"],
    ["Summarisation", "Summarization"],
    ["Todo", "Todos"],
    ["SubAgents", "Subagents"],
    ["BackgroundSubagent", "BackgroundSubagents"],
    ["HumanInLoop", undefined],
    ["", undefined],
    ["M", undefined],
    ["todos\ud800", "Todos"],
    ["m".repeat(1_000_000), undefined]
  ] as const) {
    it.effect(`"${near.slice(0, 30)}" ${part === undefined ? "is a name of its own" : `is taken for ${part}`}`, () =>
      Effect.gen(function* () {
        const ran = yield* Effect.result(requestOf([Middleware.make({ name: near })]))
        if (part === undefined) return assert.strictEqual(ran._tag, "Success")
        assert.strictEqual(ran._tag, "Failure")
        const error = ran._tag === "Failure" ? ran.failure : undefined
        assert.include(error?.message, `"${near}" is named almost like the part "${part}"`)
        return undefined
      })
    )
  }

  it.effect("a part that the agent is without keeps no name from others", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({ name: "deep", prompt: "p", middleware: [Middleware.make({ name: "memory" })] })
      assert.strictEqual((yield* Agent.run(agent, "go")).text, "done")
    }).pipe(Effect.provide(layers(["done"])))
  )

  it.effect("options that are undefined are as if they were not given", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "deep",
        prompt: "p",
        description: undefined,
        tools: undefined,
        files: undefined,
        execute: undefined,
        middleware: undefined,
        todos: undefined,
        memory: undefined,
        skills: undefined,
        agentId: undefined,
        summarization: { trigger: undefined, tail: undefined, contextWindowTokens: undefined },
        largeResults: { toolResults: undefined, userMessages: undefined, folder: undefined, keep: undefined },
        profiles: undefined,
        parameters: undefined,
        maxRounds: undefined,
        toolConcurrency: undefined,
        stopWhen: undefined,
        subagents: undefined,
        backgroundSubagents: undefined,
        generalPurpose: undefined,
        maxDepth: undefined
      })
      yield* Agent.run(agent, "go")
      yield* Agent.run(DeepAgent.make({ name: "deep", prompt: "p" }), "go")
      const [first, second] = yield* TestChatModel.requests
      assert.deepStrictEqual(first?.tools, second?.tools)
      assert.strictEqual(first?.systemPrompt, second?.systemPrompt)
      assert.deepStrictEqual(first?.parameters, second?.parameters)
    }).pipe(Effect.provide(layers(["done", "done"])))
  )

  it("are the names of the modules' middleware", () => {
    const modules = [
      Todos.make(),
      Skills.make({ sources: [] }),
      Filesystem.make(),
      Subagents.make({ agents: [] }),
      BackgroundSubagents.make({ agents: [] }),
      Summarization.make(),
      Rubric.make({ threshold: 0.8 }),
      PromptCaching.make(),
      Memory.make({ sources: [] }),
      Facts.make({ namespace: "n" }),
      HumanInTheLoop.make({ tools: {} }),
      ModelRetry.make(),
      ModelTimeout.make()
    ]
    assert.deepStrictEqual(
      modules.map(({ name }) => name),
      DeepAgent.parts.slice(1)
    )
  })
})

describe("verify, goal and reflect", () => {
  it.effect("are one grader, which grades each answer by one call and sends it back", () =>
    Effect.gen(function* () {
      const agent = DeepAgent.make({
        name: "writer",
        prompt: "You write.",
        verify: "It is brief.",
        goal: ["it has a link"],
        reflect: true
      })
      const grade = (quality: number, quote: string) => ({
        satisfied: true,
        verdicts: [{ criterion: 1, met: true, quote }],
        quality,
        feedback: "better"
      })
      // The quote is of a tool's result, which shows what is in the file.
      const grades = [grade(0.9, "see #1"), grade(0.7, "see #12"), grade(0.8, "see #12")]
      const graded: Array<ChatModel.ModelRequest> = []
      let turns = 0
      const model = TestChatModel.reactive((request) => {
        if (request.purpose === "grade") return JSON.stringify(grades[graded.push(request) - 1])
        if (++turns === 2) return TestChatModel.calls([{ name: "read_file", arguments: { file_path: "/notes.md" } }])
        return `answer ${turns}`
      })
      const files = MemoryBackend.layer({ files: { "/notes.md": "Faster, see #12" } })
      const { output } = yield* Agent.run(agent, "notes").pipe(Effect.provide([model, files]))
      assert.strictEqual(output, "answer 4")
      assert.strictEqual(graded.length, 3)
      assert.include(graded[0]?.systemPrompt ?? "", "quality")
    })
  )

  it.effect("grade nothing where they are not set, and give way to a grader of yours", () =>
    Effect.gen(function* () {
      const askAll = (agent: Agent.Agent<string, unknown, ChatModel.ChatModel | Backend.Backend>) =>
        Effect.gen(function* () {
          yield* Effect.orDie(Agent.run(agent, "go"))
          return (yield* TestChatModel.requests).filter(({ purpose }) => purpose === "grade").length
        }).pipe(Effect.provide([TestChatModel.reactive(() => "done"), MemoryBackend.layer()]))
      const options = { name: "writer", prompt: "You write." }
      const own = Rubric.graded({ grade: () => Effect.succeed(Rubric.satisfied) })
      assert.strictEqual(yield* askAll(DeepAgent.make(options)), 0)
      assert.strictEqual(yield* askAll(DeepAgent.make({ ...options, reflect: false, goal: [] })), 0)
      assert.strictEqual(yield* askAll(DeepAgent.make({ ...options, reflect: 0.9 })), 1)
      assert.strictEqual(yield* askAll(DeepAgent.make({ ...options, reflect: 0.9, middleware: [own] })), 0)
    })
  )
})
