/** A day of one editor, step by step: all that the agent says on the wire for each of them. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type * as acp from "@agentclientprotocol/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { bundle } from "../bundle.ts"
import { choose, makeFolder, openProgram, type Person } from "./editor.ts"

const server = bundle(new URL("children/coder.ts", import.meta.url))

const start = (folder: string) => openProgram(server, join(folder, "threads.db"))

/** The editor, its process, and the session that it has open. */
interface Desk {
  readonly folder: string
  editor: Effect.Success<ReturnType<typeof start>>
  scope: Scope.Closeable
  sessionId: string
  forked: string
}

const restart = async (desk: Desk): Promise<string> => {
  desk.editor.kill()
  await desk.editor.over
  await Effect.runPromise(Scope.close(desk.scope, Exit.void))
  desk.scope = await Effect.runPromise(Scope.make())
  desk.editor = await Effect.runPromise(Scope.provide(start(desk.folder), desk.scope))
  await desk.editor.initialize()
  return "ready"
}

const at = ({ folder }: Desk, name: string): string => join(folder, name)

const prompt =
  (text: (desk: Desk) => string, person: Person = choose("allow_once")) =>
  async (desk: Desk) => {
    desk.editor.editor.person = person
    return (await desk.editor.prompt(desk.sessionId, text(desk))).stopReason
  }

const write = (name: string, person?: Person) => prompt((desk) => `write ${at(desk, name)}`, person)
const run = (command: string, person?: Person) => prompt(() => `run ${command}`, person)
const say = (text: string) => prompt(() => text)

const ask = async <A>(desk: Desk, method: string, params: object): Promise<A> => {
  const answer = await desk.editor.agent.request<A, unknown>(method, { sessionId: desk.sessionId, ...params })
  await desk.editor.settled()
  return answer
}

const request =
  (method: string, params: object = {}) =>
  (desk: Desk) =>
    ask(desk, method, params).then(() => "done")

const open = (method: string) => (desk: Desk) =>
  ask(desk, method, { cwd: desk.folder, mcpServers: [] }).then(() => "open")

const mode = (modeId: string) => request("session/set_mode", { modeId })
const option = (configId: string, value: string) => request("session/set_config_option", { configId, value })

const list = (desk: Desk) =>
  ask<acp.ListSessionsResponse>(desk, "session/list", {}).then(({ sessions }) =>
    sessions.map(({ title }) => title ?? "-").join(", ")
  )

/** Answers the next form, and says a word. */
const fill = (word: string, answer: acp.CreateElicitationResponse) => (desk: Desk) => {
  desk.editor.editor.fill = () => answer
  return say(word)(desk)
}

/** Cancels a turn while it is at work. */
const cancelled = (text: string, isAtWork: (desk: Desk) => boolean) => async (desk: Desk) => {
  const { editor, sessionId } = desk
  editor.editor.person = () => new Promise(() => {})
  editor.asked.length = 0
  editor.updates.length = 0
  const turn = editor.prompt(sessionId, text)
  await editor.until(() => isAtWork(desk))
  await editor.agent.notify("session/cancel", { sessionId })
  return (await turn).stopReason
}

const isTalking = ({ editor }: Desk): boolean => editor.text().includes("I think")

const contains = (name: string, text: string) => (desk: Desk) =>
  assert.strictEqual(desk.editor.written.get(at(desk, name)) ?? readFileSync(at(desk, name), "utf8"), text)

const isMissing = (name: string) => (desk: Desk) =>
  assert.isFalse(existsSync(at(desk, name)) || desk.editor.written.has(at(desk, name)))

type Step = readonly [
  name: string,
  act: (desk: Desk) => Promise<string>,
  answer: string,
  updates: string,
  requests: string,
  check?: (desk: Desk) => void
]

/** The updates of a whole thread, each kind once. */
const past =
  "user_message_chunk, agent_message_chunk, tool_call in_progress, tool_call_update completed, tool_call_update failed, plan"

const unique = (names: string): string => [...new Set(names.split(", "))].join(", ")

const steps: ReadonlyArray<Step> = [
  [
    "a prompt before the editor said who it is",
    (desk) => desk.editor.open(desk.folder).then(() => "open"),
    "error -32600",
    "",
    ""
  ],
  [
    "says who it is",
    ({ editor }) => editor.initialize().then(({ protocolVersion }) => `version ${protocolVersion}`),
    "version 1",
    "",
    ""
  ],
  [
    "opens a folder that is no path from the root",
    ({ editor }) => editor.open("here").then(() => "open"),
    "error -32602",
    "",
    ""
  ],
  [
    "opens a session",
    async (desk) => {
      desk.sessionId = (await desk.editor.open(desk.folder)).sessionId
      return "open"
    },
    "open",
    "",
    ""
  ],
  ["says a word", say("hello"), "end_turn", "session_info_update, usage_update, agent_message_chunk", ""],
  ["lists the sessions", list, "hello", "", ""],
  [
    "asks for a plan",
    say("plan"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, plan, tool_call_update completed, usage_update, agent_message_chunk",
    ""
  ],
  [
    "reads a file",
    prompt((desk) => `read ${at(desk, "a.txt")}`),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file"
  ],
  [
    "edits it, with its diff",
    prompt((desk) => `edit ${at(desk, "a.txt")}`),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission, fs/read_text_file, fs/write_text_file",
    contains("a.txt", "two\n")
  ],
  [
    "reads what was edited",
    prompt((desk) => `read ${at(desk, "a.txt")}`),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file"
  ],
  [
    "writes a file",
    write("b.txt"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission, fs/read_text_file, fs/write_text_file",
    contains("b.txt", "new\n")
  ],
  [
    "denies a write",
    write("c.txt", choose("reject_once")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission",
    isMissing("c.txt")
  ],
  [
    "denies by closing the question",
    write("d.txt", () => ({ outcome: { outcome: "cancelled" } })),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission",
    isMissing("d.txt")
  ],
  [
    "answers with an option that was not offered",
    write("e.txt", () => ({ outcome: { outcome: "selected", optionId: "all" } })),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission",
    isMissing("e.txt")
  ],
  [
    "fails to answer",
    write("f.txt", () => Promise.reject(new Error("no"))),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file, session/request_permission",
    isMissing("f.txt")
  ],
  [
    "runs a command in its terminal",
    run("echo one"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "session/request_permission, terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  [
    "denies a command",
    run("echo two", choose("reject_once")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "session/request_permission"
  ],
  [
    "allows a command for good",
    run("echo three", choose("allow_always")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "session/request_permission, terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  [
    "runs it again, unasked",
    run("echo three", choose("reject_once")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  [
    "is asked about another one",
    run("echo four"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "session/request_permission, terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  [
    "runs a command that fails",
    run("false"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update, tool_call_update failed, usage_update, agent_message_chunk",
    "session/request_permission, terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  [
    "fills in a form",
    fill("ask", { action: "accept", content: { colour: "red", sizes: ["S"] } }),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call pending, tool_call_update completed, usage_update, agent_message_chunk",
    "elicitation/create"
  ],
  [
    "closes a form",
    fill("ask", { action: "cancel" }),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "elicitation/create"
  ],
  [
    "chooses one of two",
    fill("choose", { action: "accept", content: { answer: "left" } }),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call pending, tool_call_update completed, usage_update, agent_message_chunk",
    "elicitation/create"
  ],
  [
    "delegates to a sub-agent",
    prompt((desk) => `delegate read ${at(desk, "a.txt")}`),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file"
  ],
  [
    "reads a file that is not there",
    prompt((desk) => `read ${at(desk, "none.txt")}`),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file"
  ],
  [
    "reads outside of the folder",
    say("read /etc/hostname"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update failed, usage_update, agent_message_chunk",
    ""
  ],
  [
    "writes outside of the folder",
    say("write /etc/new.txt"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    ""
  ],
  ["cancels while the model talks", cancelled("hang", isTalking), "cancelled", "usage_update, agent_message_chunk", ""],
  [
    "cancels while it is asked",
    cancelled("run echo five", ({ editor }) => editor.asked.length > 0),
    "cancelled",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed",
    "session/request_permission, $/cancel_request"
  ],
  [
    "cancels while nothing is at work",
    ({ editor, sessionId }) => editor.agent.notify("session/cancel", { sessionId }).then(() => "sent"),
    "sent",
    "",
    ""
  ],
  [
    "gets an answer that was cut at the limit of tokens",
    say("cut"),
    "max_tokens",
    "usage_update, agent_message_chunk",
    ""
  ],
  ["gets a refusal", say("refuse"), "refusal", "usage_update, agent_message_chunk", ""],
  ["gets a failure", say("fail"), "error -32603", "usage_update", ""],
  ["goes on after it", say("hello again"), "end_turn", "usage_update, agent_message_chunk", ""],
  ["chooses a mode that edits unasked", mode("auto-edit"), "done", "current_mode_update, config_option_update", ""],
  [
    "writes, unasked",
    write("g.txt", choose("reject_once")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update completed, usage_update, agent_message_chunk",
    "fs/read_text_file, fs/write_text_file",
    contains("g.txt", "new\n")
  ],
  [
    "is asked about a command still",
    run("echo six"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "session/request_permission, terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  ["chooses the mode that changes nothing", option("mode", "plan"), "done", "current_mode_update", ""],
  [
    "writes nothing",
    write("h.txt"),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call pending, tool_call_update failed, usage_update, agent_message_chunk",
    "fs/read_text_file",
    isMissing("h.txt")
  ],
  ["may not choose yolo", mode("yolo"), "error -32602", "", ""],
  ["may not choose a mode that is not there", option("mode", "free"), "error -32602", "", ""],
  ["chooses to be asked again", mode("ask"), "done", "current_mode_update, config_option_update", ""],
  ["chooses another agent", option("agent", "reviewer"), "done", "", ""],
  ["says a word to it", say("hello"), "end_turn", "usage_update, agent_message_chunk", ""],
  ["chooses the first agent again", option("agent", "coder"), "done", "", ""],
  ["names the session", request("session/set_title", { title: "my work" }), "done", "", ""],
  [
    "forks the session",
    async (desk) => {
      const { sessionId } = await ask<acp.NewSessionResponse>(desk, "session/fork", { cwd: desk.folder })
      desk.forked = sessionId
      return "open"
    },
    "open",
    "",
    ""
  ],
  [
    "says a word in the fork",
    ({ editor, forked }) => editor.prompt(forked, "only here").then(({ stopReason }) => stopReason),
    "end_turn",
    "usage_update, agent_message_chunk",
    ""
  ],
  [
    "archives the fork",
    (desk) => ask(desk, "session/archive", { sessionId: desk.forked }).then(() => "done"),
    "done",
    "",
    ""
  ],
  ["lists what is not archived", list, "my work", "", ""],
  ["closes the session", request("session/close"), "done", "", ""],
  ["prompts the closed session", say("hello"), "error -32002", "", ""],
  ["resumes it, without its past", open("session/resume"), "open", "", ""],
  [
    "loses its agent to kill -9, in the middle of a turn",
    async (desk) => {
      desk.editor.updates.length = 0
      const turn = desk.editor.prompt(desk.sessionId, "hang").catch(() => undefined)
      await desk.editor.until(() => isTalking(desk))
      await restart(desk)
      void turn
      return "ready"
    },
    "ready",
    "",
    ""
  ],
  ["loads the session in a new process", open("session/load"), "open", past, ""],
  ["loads it twice", open("session/load"), "error -32600", "", ""],
  [
    "goes on with the turn that was cut off",
    cancelled("/resume", isTalking),
    "cancelled",
    "usage_update, agent_message_chunk",
    ""
  ],
  [
    "runs what it allowed for good, in the new process too",
    run("echo three", choose("reject_once")),
    "end_turn",
    "usage_update, agent_message_chunk, tool_call in_progress, tool_call_update, tool_call_update completed, usage_update, agent_message_chunk",
    "terminal/create, terminal/wait_for_exit, terminal/output, terminal/release"
  ],
  ["deletes the session", request("session/delete"), "done", "", ""],
  ["loads what was deleted", open("session/load"), "error -32002", "", ""],
  [
    "unarchives the fork",
    (desk) => ask(desk, "session/unarchive", { sessionId: desk.forked }).then(() => "done"),
    "done",
    "",
    ""
  ],
  [
    "loads the fork",
    (desk) => {
      desk.sessionId = desk.forked
      return open("session/load")(desk)
    },
    "open",
    past,
    ""
  ],
  ["says a last word", say("good bye"), "end_turn", "usage_update, agent_message_chunk", ""]
]

const outcomeOf = (act: Promise<string>): Promise<string> =>
  act.catch((error: acp.RequestError) => `error ${error.code}`)

describe("AcpServer: a session of an editor", { timeout: 120_000 }, () => {
  it.live(`goes through ${steps.length} steps as the protocol says`, () =>
    Effect.promise(async () => {
      const folder = makeFolder()
      writeFileSync(join(folder, "a.txt"), "one\n")
      const scope = await Effect.runPromise(Scope.make())
      const editor = await Effect.runPromise(Scope.provide(start(folder), scope))
      const desk: Desk = { folder, editor, scope, sessionId: "", forked: "" }
      for (const [name, act, answer, updates, requests, check] of steps) {
        const given = await outcomeOf(act(desk))
        await desk.editor.settled()
        const taken = desk.editor.checks.takeSaid()
        const said = updates === past ? { ...taken, updates: unique(taken.updates) } : taken
        assert.deepStrictEqual({ name, answer: given, ...said }, { name, answer, updates, requests })
        check?.(desk)
        assert.deepStrictEqual([name, ...desk.editor.checks.problems], [name])
      }
      await Effect.runPromise(Scope.close(desk.scope, Exit.void))
    })
  )
})
