import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type * as acp from "@agentclientprotocol/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { AcpServer } from "effect-deepagents/acp"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { coder, models, reviewer } from "./agents.ts"
import { choose, everything, makeFolder, openEditor, type Person } from "./editor.ts"

interface Serving {
  readonly mode?: "ask" | "auto-edit" | "plan" | "yolo"
  readonly client?: acp.ClientCapabilities
}

const connect = Effect.fnUntraced(function* ({ client = everything, mode }: Serving = {}) {
  const server = Layer.launch(AcpServer.layer({ agents: { coder, reviewer }, ...(mode === undefined ? {} : { mode }) }))
  const opened = yield* openEditor(Effect.provide(server, models))
  yield* Effect.promise(() => opened.initialize(client))
  return opened
})

const serving = Effect.fnUntraced(function* (options: Serving = {}) {
  const opened = yield* connect(options)
  const cwd = makeFolder()
  const { sessionId } = yield* Effect.promise(() => opened.open(cwd))
  const prompt = (text: string) => Effect.promise(() => opened.prompt(sessionId, text))
  return { ...opened, cwd, sessionId, prompt, sendTo: opened.prompt, at: (name: string) => join(cwd, name) }
})

type Opened = Effect.Success<ReturnType<typeof serving>>

const valid = ({ checks }: Pick<Opened, "checks">) => assert.deepStrictEqual(checks.problems, [])

/** Runs a test with a store of its own, and checks that all messages were valid. */
const test = (
  name: string,
  work: (editor: Opened) => Effect.Effect<unknown, unknown, SessionStore.SessionStore>,
  options?: Serving
) =>
  it.live(name, () =>
    Effect.scoped(
      Effect.gen(function* () {
        const editor = yield* serving(options)
        yield* work(editor)
        yield* Effect.promise(() => editor.settled())
        valid(editor)
      })
    ).pipe(Effect.provide(MemorySessions.layer))
  )

const failure = (request: Promise<unknown>) =>
  Effect.promise(() =>
    request.then(
      () => ({ code: 0, message: "no failure" }),
      (error: acp.RequestError) => ({ code: error.code, message: error.message })
    )
  )

const statusOf = (updates: ReadonlyArray<acp.SessionUpdate>) =>
  updates.flatMap((one) =>
    one.sessionUpdate === "tool_call" || one.sessionUpdate === "tool_call_update"
      ? [`${one.sessionUpdate} ${one.toolCallId} ${one.status ?? "-"}`]
      : []
  )

describe("AcpServer: turns", () => {
  test("streams the text of an answer, and names the session after its first words", (editor) =>
    Effect.gen(function* () {
      const { stopReason } = yield* editor.prompt("dear agent")
      assert.strictEqual(stopReason, "end_turn")
      assert.strictEqual(editor.text(), "Hello dear agent")
      const titles = editor.taken().flatMap((one) => (one.sessionUpdate === "session_info_update" ? [one.title] : []))
      assert.deepStrictEqual(titles, ["dear agent"])
    }))

  test("reports why a turn ended", (editor) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* editor.prompt("cut")).stopReason, "max_tokens")
      assert.strictEqual((yield* editor.prompt("refuse")).stopReason, "refusal")
      const failed = yield* failure(editor.prompt("fail").pipe(Effect.runPromise))
      assert.strictEqual(failed.code, -32603)
      // A failure ends the turn, not the session.
      assert.strictEqual((yield* editor.prompt("and now?")).stopReason, "end_turn")
    }))

  test("shows the plan, and calls by the annotations of their tools", (editor) =>
    Effect.gen(function* () {
      writeFileSync(editor.at("a.txt"), "one\n")
      yield* editor.prompt("plan")
      const plans = editor.taken().flatMap((one) => (one.sessionUpdate === "plan" ? [one.entries] : []))
      assert.deepStrictEqual(
        plans.at(-1)?.map(({ status }) => status),
        ["completed", "in_progress"]
      )
      yield* editor.prompt(`read ${editor.at("a.txt")}`)
      const [call] = editor.taken().filter((one) => one.sessionUpdate === "tool_call")
      assert.deepInclude(call, { kind: "read", name: "read_file", status: "in_progress" })
      assert.deepStrictEqual(call?.locations, [{ path: editor.at("a.txt") }])
    }))

  test("names the calls of a sub-agent by its path", (editor) =>
    Effect.gen(function* () {
      writeFileSync(editor.at("a.txt"), "one\n")
      yield* editor.prompt(`delegate read ${editor.at("a.txt")}`)
      const calls = editor.taken().filter((one) => one.sessionUpdate === "tool_call")
      assert.deepStrictEqual(
        calls.map(({ title }) => title.split(":")[0]),
        ["task", "helper › read_file"]
      )
      assert.match(calls[1]?.toolCallId ?? "", /^helper\/.+\/r-/)
    }))

  test("refuses a second prompt of a busy session, and cancels each session by itself", (editor) =>
    Effect.gen(function* () {
      const other = yield* Effect.promise(() => editor.open(editor.cwd))
      const first = editor.agent.request("session/prompt", {
        sessionId: editor.sessionId,
        prompt: [{ type: "text", text: "hang" }]
      })
      const second = editor.agent.request("session/prompt", {
        sessionId: other.sessionId,
        prompt: [{ type: "text", text: "hang" }]
      })
      yield* Effect.promise(() => editor.until(() => editor.text() === "I thinkI think"))
      assert.strictEqual((yield* failure(Effect.runPromise(editor.prompt("hi")))).code, -32600)
      yield* Effect.promise(() => editor.agent.notify("session/cancel", { sessionId: other.sessionId }))
      assert.strictEqual((yield* Effect.promise(() => second)).stopReason, "cancelled")
      yield* Effect.promise(() => editor.agent.notify("session/cancel", { sessionId: editor.sessionId }))
      assert.strictEqual((yield* Effect.promise(() => first)).stopReason, "cancelled")
      assert.strictEqual((yield* editor.prompt("hi")).stopReason, "end_turn")
    }))

  test("takes images, files and links of a prompt", (editor) =>
    Effect.gen(function* () {
      yield* Effect.promise(() =>
        editor.agent.request("session/prompt", {
          sessionId: editor.sessionId,
          prompt: [
            { type: "text", text: "look at" },
            { type: "image", data: "aGk=", mimeType: "image/png" },
            { type: "resource_link", name: "a", uri: "file:///tmp/a%20b.ts" },
            { type: "resource", resource: { uri: "file:///tmp/c.ts", text: "const c = 1" } }
          ]
        })
      )
      yield* Effect.promise(() => editor.settled())
      assert.include(editor.text(), "@/tmp/a b.ts")
      assert.include(editor.text(), '<file name="/tmp/c.ts">\nconst c = 1\n</file>')
    }))
})

describe("AcpServer: decisions", () => {
  test("asks before it writes, with the change as a diff, and writes to the editor only", (editor) =>
    Effect.gen(function* () {
      writeFileSync(editor.at("a.txt"), "one\n")
      yield* editor.prompt(`read ${editor.at("a.txt")}`)
      editor.taken()
      yield* editor.prompt(`edit ${editor.at("a.txt")}`)
      const [asked] = editor.asked
      assert.deepStrictEqual(asked?.toolCall.content, [
        { type: "diff", path: editor.at("a.txt"), oldText: "one\n", newText: "two\n" }
      ])
      assert.strictEqual(editor.written.get(editor.at("a.txt")), "two\n")
      assert.strictEqual(readFileSync(editor.at("a.txt"), "utf8"), "one\n")
      const statuses = statusOf(editor.taken()).map((line) => line.split(" ").at(-1))
      assert.deepStrictEqual(statuses, ["pending", "in_progress", "completed"])
    }))

  /** Answers of which none may let the call run. */
  const refusals: { readonly [name: string]: Person } = {
    "a rejection": choose("reject_once"),
    "a cancellation": () => ({ outcome: { outcome: "cancelled" } }),
    "an option that was not offered": () => ({ outcome: { outcome: "selected", optionId: "allow" } }),
    "an error": () => Promise.reject(new Error("no")),
    // @ts-expect-error the answer of a broken client
    nonsense: () => ({ nonsense: true }),
    // @ts-expect-error the answer of a broken client
    nothing: () => {}
  }
  for (const [name, person] of Object.entries(refusals)) {
    it.live(`writes nothing after ${name}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const editor = yield* serving()
          editor.editor.person = person
          yield* editor.prompt(`write ${editor.at("a.txt")}`)
          assert.isFalse(existsSync(editor.at("a.txt")))
          assert.strictEqual(editor.written.size, 0)
          assert.include(editor.text(), "failed: ")
          const statuses = statusOf(editor.taken()).map((line) => line.split(" ").at(-1))
          assert.deepStrictEqual(statuses, ["pending", "failed"])
        })
      ).pipe(Effect.provide(MemorySessions.layer))
    )
  }

  test("withdraws a question when its prompt is cancelled", (editor) =>
    Effect.gen(function* () {
      let isWithdrawn = false
      editor.editor.person = (_, signal) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            isWithdrawn = true
            resolve({ outcome: { outcome: "cancelled" } })
          })
        )
      const running = editor.agent.request("session/prompt", {
        sessionId: editor.sessionId,
        prompt: [{ type: "text", text: `write ${editor.at("a.txt")}` }]
      })
      yield* Effect.promise(() => editor.until(() => editor.asked.length > 0))
      yield* Effect.promise(() => editor.agent.notify("session/cancel", { sessionId: editor.sessionId }))
      assert.strictEqual((yield* Effect.promise(() => running)).stopReason, "cancelled")
      yield* Effect.promise(() => editor.settled())
      assert.isTrue(isWithdrawn)
      assert.isFalse(existsSync(editor.at("a.txt")))
    }))

  test("asks no more about calls that the person always allows", (editor) =>
    Effect.gen(function* () {
      editor.editor.person = choose("allow_always")
      yield* editor.prompt("run echo hi")
      yield* editor.prompt("run echo hi")
      assert.lengthOf(editor.asked, 1)
    }))

  test("decides pending requests again when the mode changes", (editor) =>
    Effect.gen(function* () {
      editor.editor.person = () => new Promise(() => {})
      const running = editor.prompt(`write ${editor.at("a.txt")}`).pipe(Effect.runPromise)
      yield* Effect.promise(() => editor.until(() => editor.asked.length > 0))
      yield* Effect.promise(() =>
        editor.agent.request("session/set_mode", { sessionId: editor.sessionId, modeId: "auto-edit" })
      )
      yield* Effect.promise(() => running)
      assert.isTrue(editor.written.has(editor.at("a.txt")))
    }))

  test("never reaches yolo by a client's wish", (editor) =>
    Effect.gen(function* () {
      const { sessionId } = editor
      const request = editor.agent.request("session/set_mode", { sessionId, modeId: "yolo" })
      assert.strictEqual((yield* failure(request)).code, -32602)
      const option = editor.agent.request("session/set_config_option", { sessionId, configId: "mode", value: "yolo" })
      assert.strictEqual((yield* failure(option)).code, -32602)
    }))

  test(
    "changes nothing in plan mode, and everything in yolo",
    (editor) =>
      Effect.gen(function* () {
        yield* Effect.promise(() =>
          editor.agent.request("session/set_config_option", {
            sessionId: editor.sessionId,
            configId: "mode",
            value: "plan"
          })
        )
        yield* editor.prompt(`write ${editor.at("a.txt")}`)
        assert.isFalse(existsSync(editor.at("a.txt")))
        yield* Effect.promise(() =>
          editor.agent.request("session/set_mode", { sessionId: editor.sessionId, modeId: "yolo" })
        )
        yield* editor.prompt(`write ${editor.at("b.txt")}`)
        assert.isTrue(editor.written.has(editor.at("b.txt")))
        assert.lengthOf(editor.asked, 0)
      }),
    { mode: "yolo" }
  )

  test("asks questions by a form", (editor) =>
    Effect.gen(function* () {
      editor.editor.fill = () => ({ action: "accept", content: { colour: "blue", sizes: ["S", "L"] } })
      yield* editor.prompt("ask")
      assert.include(editor.text(), "blue")
      assert.include(editor.text(), '["S","L"]')
    }))

  test(
    "asks questions by options without forms of the client, and refuses questions that need text",
    (editor) =>
      Effect.gen(function* () {
        editor.editor.person = ({ options }) => ({
          outcome: { outcome: "selected", optionId: options.find(({ name }) => name === "right")?.optionId ?? "" }
        })
        yield* editor.prompt("choose")
        assert.include(editor.text(), "done: right")
        yield* editor.prompt("ask")
        assert.include(editor.text(), "the editor has no forms")
      }),
    { client: { ...everything, elicitation: null } }
  )
})

describe("AcpServer: the editor's files and terminals", () => {
  test("reads unsaved text of open files", (editor) =>
    Effect.gen(function* () {
      writeFileSync(editor.at("a.txt"), "one\n")
      editor.buffers.set(editor.at("a.txt"), "unsaved\n")
      yield* editor.prompt(`read ${editor.at("a.txt")}`)
      assert.include(editor.text(), "unsaved")
    }))

  test("asks the editor for no file outside of the session's folders", (editor) =>
    Effect.gen(function* () {
      yield* editor.prompt("read /etc/hostname")
      yield* editor.prompt(`read ${editor.at("../outside.txt")}`)
      assert.deepStrictEqual(editor.read, [])
      assert.include(editor.text(), "failed: ")
    }))

  test("runs commands in terminals of the editor, which the call shows", (editor) =>
    Effect.gen(function* () {
      yield* editor.prompt("run echo $((20 + 22))")
      assert.include(editor.text(), "42")
      assert.strictEqual(editor.terminals.size, 1)
      const shown = editor
        .taken()
        .flatMap((one) => (one.sessionUpdate === "tool_call_update" ? (one.content ?? []) : []))
      assert.deepStrictEqual(shown, [{ type: "terminal", terminalId: "terminal-1" }])
    }))

  test(
    "uses the disk and the machine if the editor offers nothing",
    (editor) =>
      Effect.gen(function* () {
        writeFileSync(editor.at("a.txt"), "one\n")
        yield* editor.prompt(`read ${editor.at("a.txt")}`)
        editor.taken()
        yield* editor.prompt(`edit ${editor.at("a.txt")}`)
        assert.strictEqual(readFileSync(editor.at("a.txt"), "utf8"), "two\n")
        yield* editor.prompt("run echo $((20 + 22))")
        assert.include(editor.text(), "42")
        assert.strictEqual(editor.terminals.size, 0)
      }),
    { client: {} }
  )
})

describe("AcpServer: sessions", () => {
  it.live("loads a session with all that was said and done, and goes on with it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const first = yield* serving()
        writeFileSync(first.at("a.txt"), "one\n")
        yield* first.prompt("hello")
        yield* first.prompt(`read ${first.at("a.txt")}`)
        yield* first.prompt("plan")
        yield* Effect.promise(() => first.leave())
        yield* Effect.exit(first.over)
        const second = yield* connect()
        const { sessions } = yield* Effect.promise(() => second.agent.request("session/list", { cwd: first.cwd }))
        assert.deepStrictEqual(
          sessions.map(({ sessionId, title }) => [sessionId, title]),
          [[first.sessionId, "hello"]]
        )
        yield* Effect.promise(() =>
          second.agent.request("session/load", { sessionId: first.sessionId, cwd: first.cwd, mcpServers: [] })
        )
        yield* Effect.promise(() => second.settled())
        const updates = second.taken()
        const said = updates.flatMap((one) =>
          one.sessionUpdate === "user_message_chunk" && one.content.type === "text" ? [one.content.text] : []
        )
        assert.deepStrictEqual(said, ["hello", `read ${first.at("a.txt")}`, "plan"])
        assert.deepStrictEqual(
          statusOf(updates).map((line) => line.split(" ").at(-1)),
          ["in_progress", "completed", "in_progress", "completed"]
        )
        assert.lengthOf(
          updates.filter((one) => one.sessionUpdate === "plan"),
          1
        )
        yield* Effect.promise(() => second.prompt(first.sessionId, "go on"))
        assert.include(second.text(), "Hello go on")
        valid(first)
        valid(second)
      })
    ).pipe(Effect.provide(MemorySessions.layer))
  )

  test("closes, resumes and deletes sessions", (editor) =>
    Effect.gen(function* () {
      const { agent, cwd, sessionId } = editor
      yield* editor.prompt("hello")
      yield* Effect.promise(() => agent.request("session/close", { sessionId }))
      assert.strictEqual((yield* failure(Effect.runPromise(editor.prompt("hi")))).code, -32002)
      editor.taken()
      yield* Effect.promise(() => agent.request("session/resume", { sessionId, cwd }))
      yield* Effect.promise(() => editor.until(() => editor.updates.length > 0))
      assert.deepStrictEqual(
        editor.taken().map((one) => one.sessionUpdate),
        ["available_commands_update"]
      )
      yield* Effect.promise(() => agent.request("session/delete", { sessionId }))
      const load = agent.request("session/load", { sessionId, cwd, mcpServers: [] })
      assert.strictEqual((yield* failure(load)).code, -32002)
    }))

  test("forks a session, and both go on by themselves", (editor) =>
    Effect.gen(function* () {
      const { agent, cwd, sessionId } = editor
      const fork = (params: unknown) => agent.request<acp.NewSessionResponse, unknown>("session/fork", params)
      yield* editor.prompt("hello")
      const { modes, sessionId: forked } = yield* Effect.promise(() => fork({ sessionId, cwd }))
      assert.notStrictEqual(forked, sessionId)
      assert.strictEqual(modes?.currentModeId, "ask")
      yield* editor.prompt("only here")
      yield* Effect.promise(() => editor.sendTo(forked, "only there"))
      const wordsOf = (threadId: string) =>
        Effect.map(SessionStore.checkpoint(threadId), (checkpoint) =>
          (checkpoint?.messages ?? []).flatMap((one) => (one.role === "human" ? [Message.text(one)] : []))
        )
      assert.deepStrictEqual(yield* wordsOf(sessionId), ["hello", "only here"])
      assert.deepStrictEqual(yield* wordsOf(forked), ["hello", "only there"])
      assert.strictEqual((yield* failure(fork({ sessionId: "unknown", cwd }))).code, -32002)
      assert.strictEqual((yield* failure(fork({ sessionId, cwd: "here" }))).code, -32602)
      const hanging = editor.sendTo(sessionId, "hang")
      yield* Effect.promise(() => editor.until(() => editor.text().endsWith("I think")))
      assert.strictEqual((yield* failure(fork({ sessionId, cwd }))).code, -32600)
      yield* Effect.promise(() => agent.notify("session/cancel", { sessionId }))
      yield* Effect.promise(() => hanging)
      // No fork is left of the requests that failed.
      assert.lengthOf((yield* Effect.flatMap(SessionStore.SessionStore, (store) => store.list())).items, 2)
    }))

  test("archives and names sessions", (editor) =>
    Effect.gen(function* () {
      const { agent, sessionId } = editor
      const ask = (method: string, params: unknown) =>
        agent.request<{ readonly title?: string }, unknown>(method, params)
      const idsOf = (archived?: string, cursor?: string) =>
        Effect.promise(() =>
          agent.request<acp.ListSessionsResponse, unknown>("session/list", { cursor, archived })
        ).pipe(Effect.map(({ nextCursor, sessions }) => ({ ids: sessions.map((one) => one.sessionId), nextCursor })))
      yield* editor.prompt("hello")
      const { title } = yield* Effect.promise(() =>
        ask("session/set_title", { sessionId, title: "  A\n name\u001b[2J " })
      )
      assert.strictEqual(title, "A name")
      yield* editor.prompt("more")
      const { sessions } = yield* Effect.promise(() => agent.request("session/list", {}))
      assert.strictEqual(sessions[0]?.title, title)
      assert.strictEqual((yield* failure(ask("session/set_title", { sessionId, title: " \n" }))).code, -32602)
      assert.strictEqual((yield* failure(ask("session/set_title", { sessionId: "no", title: "a" }))).code, -32002)
      yield* Effect.promise(() => ask("session/archive", { sessionId }))
      yield* Effect.promise(() => ask("session/archive", { sessionId }))
      assert.strictEqual((yield* failure(Effect.runPromise(editor.prompt("hi")))).code, -32002)
      assert.deepStrictEqual((yield* idsOf()).ids, [])
      assert.deepStrictEqual(yield* idsOf("only"), { ids: [sessionId], nextCursor: undefined })
      const first = yield* idsOf("include")
      assert.deepStrictEqual(first.ids, [])
      assert.deepStrictEqual(yield* idsOf("include", first.nextCursor ?? ""), {
        ids: [sessionId],
        nextCursor: undefined
      })
      assert.strictEqual((yield* failure(ask("session/list", { archived: "sometimes" }))).code, -32602)
      yield* Effect.promise(() => ask("session/unarchive", { sessionId }))
      assert.deepStrictEqual((yield* idsOf()).ids, [sessionId])
      assert.strictEqual((yield* failure(ask("session/archive", { sessionId: "no" }))).code, -32002)
    }))

  test("chooses among agents by an option", (editor) =>
    Effect.gen(function* () {
      const { configOptions } = yield* Effect.promise(() =>
        editor.agent.request("session/set_config_option", {
          sessionId: editor.sessionId,
          configId: "agent",
          value: "reviewer"
        })
      )
      assert.deepInclude(
        configOptions.find(({ id }) => id === "agent"),
        { currentValue: "reviewer" }
      )
    }))

  it.live("shows another program's messages on the thread", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const one = yield* serving()
        yield* one.prompt("first")
        const two = yield* connect()
        yield* Effect.promise(() =>
          two.agent.request("session/load", { sessionId: one.sessionId, cwd: one.cwd, mcpServers: [] })
        )
        yield* Effect.promise(() => two.prompt(one.sessionId, "from elsewhere"))
        one.taken()
        yield* one.prompt("third")
        const said = one
          .taken()
          .flatMap((update) =>
            update.sessionUpdate === "user_message_chunk" && update.content.type === "text" ? [update.content.text] : []
          )
        assert.deepStrictEqual(said, ["from elsewhere"])
        valid(one)
        valid(two)
      })
    ).pipe(Effect.provide(MemorySessions.layer))
  )

  test("ends with its client, and the run with it", (editor) =>
    Effect.gen(function* () {
      editor.editor.person = () => new Promise(() => {})
      void editor
        .prompt(`write ${editor.at("a.txt")}`)
        .pipe(Effect.runPromise)
        .catch(() => {})
      yield* Effect.promise(() => editor.until(() => editor.asked.length > 0))
      yield* Effect.promise(() => editor.leave())
      yield* Effect.exit(editor.over)
      assert.isFalse(existsSync(editor.at("a.txt")))
    }))
})
