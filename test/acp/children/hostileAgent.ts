/** An agent that breaks the protocol: its first argument says how. It writes lines itself, and checks nothing. */
import { createInterface } from "node:readline"

const [, , how = ""] = process.argv

interface Line {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly cwd?: string }
  readonly result?: { readonly outcome?: { readonly optionId?: string }; readonly terminalId?: string }
  readonly error?: { readonly message: string }
}

const write = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const answer = (id: number | undefined, result: unknown) => write({ id, result })
const update = (value: unknown) => write({ method: "session/update", params: { sessionId: "s", update: value } })
const say = (text: string) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } })

const waiting = new Map<number, (line: Line) => void>()
let last = 0
const ask = (method: string, params: object) =>
  new Promise<Line>((resolve) => {
    last += 1
    waiting.set(last, resolve)
    write({ id: last, method, params: { sessionId: "s", ...params } })
  })

const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" }
]

const permission = (toolCall: object) => ask("session/request_permission", { toolCall, options })

/** Updates that violate the protocol. */
const junk: ReadonlyArray<unknown> = [
  null,
  "text",
  { sessionUpdate: "agent_message_chunk" },
  { sessionUpdate: "agent_message_chunk", content: null },
  { sessionUpdate: "agent_message_chunk", content: { type: "text", text: 7 } },
  { sessionUpdate: "tool_call", toolCallId: 7, title: "x" },
  { sessionUpdate: "tool_call", toolCallId: "a", title: { deep: true }, content: "none", rawInput: 7 },
  { sessionUpdate: "tool_call_update", toolCallId: "a", status: "completed", content: [null, { type: "content" }] },
  { sessionUpdate: "plan" },
  { sessionUpdate: "plan", entries: [null, { content: 7 }] },
  { sessionUpdate: "usage_update", used: "many", size: -1, cost: {} },
  { sessionUpdate: "usage_update", used: 1, size: 1, cost: { amount: "free", currency: 7 } },
  { sessionUpdate: "nonsense" },
  {}
]

let cwd = ""

const ok = ({ error }: Line): string => (error === undefined ? "done" : "refused")

const acts: { readonly [how: string]: () => Promise<string> | string } = {
  junk: () => {
    for (const one of junk) update(one)
    return "fine"
  },
  ids: () => {
    for (const id of ["\u001B]0;owned\u0007", { a: 1 }, [1], null, true, 99]) write({ id, result: {} })
    return "fine"
  },
  deep: () => {
    const deep = `${'{"a":'.repeat(3_000)}1${"}".repeat(3_000)}`
    const call = `{"sessionUpdate":"tool_call","toolCallId":"d","title":"deep","rawInput":${deep}}`
    process.stdout.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":${call}}}\n`)
    return "fine"
  },
  long: () => {
    const piece = "x".repeat(1_000_000)
    for (let count = 0; count < 100; count += 1) process.stdout.write(piece)
    return new Promise(() => {})
  },
  // The permission is for reading.
  peek: async () => {
    const path = `${cwd}/a.txt`
    await permission({ toolCallId: "r", title: "read a.txt", kind: "read", locations: [{ path }] })
    return ok(await ask("fs/write_text_file", { path, content: "new" }))
  },
  // One permission, and two writes.
  again: async () => {
    const path = `${cwd}/a.txt`
    await permission({ toolCallId: "w", title: "write a.txt", kind: "edit", locations: [{ path }] })
    const first = ok(await ask("fs/write_text_file", { path, content: "one" }))
    return `${first}, ${ok(await ask("fs/write_text_file", { path, content: "two" }))}`
  },
  // The permission is for another command.
  swap: async () => {
    await permission({ toolCallId: "x", title: "ls", kind: "execute", rawInput: { command: "ls" } })
    return ok(await ask("terminal/create", { command: "echo other" }))
  },
  same: async () => {
    await permission({ toolCallId: "x", title: "ls", kind: "execute", rawInput: { command: "ls" } })
    return ok(await ask("terminal/create", { command: "ls" }))
  },
  many: async () => {
    for (let count = 0; count < 40; count += 1) {
      const { error, result } = await ask("terminal/create", { command: "true" })
      if (error !== undefined) return `${count}: ${error.message}`
      const { terminalId } = result ?? {}
      await ask("terminal/wait_for_exit", { terminalId })
      await ask("terminal/release", { terminalId })
    }
    return "done"
  },
  kill: async () => {
    const { result } = await ask("terminal/create", { command: "sleep 1000" })
    const { terminalId } = result ?? {}
    await ask("terminal/kill", { terminalId })
    const output = await ask("terminal/output", { terminalId })
    return JSON.stringify(output.result)
  },
  // It asks, and reads no more.
  deaf: () => {
    lines.pause()
    process.stdin.pause()
    for (let count = 0; count < 2_000; count += 1) {
      write({ id: count + 1, method: "fs/read_text_file", params: { sessionId: "s", path: `${cwd}/big.txt` } })
    }
    setTimeout(() => say("deaf"), 300)
    return new Promise(() => {})
  }
}

const results: { readonly [method: string]: unknown } = {
  initialize: { protocolVersion: 1, agentCapabilities: {} },
  "session/new": { sessionId: "s" },
  "session/set_mode": {}
}

const lines = createInterface({ input: process.stdin })
lines.on("line", (text) => {
  const line: Line = JSON.parse(text)
  const { id, method = "" } = line
  if (method === "") return waiting.get(id ?? 0)?.(line)
  if (how === `silent ${method}` || method === "session/cancel") return undefined
  if (how === `null ${method}`) return answer(id, null)
  if (how === `wrong ${method}`) return answer(id, { protocolVersion: "1", sessionId: 7, stopReason: 7 })
  if (method === "session/new") cwd = line.params?.cwd ?? ""
  if (method !== "session/prompt") return answer(id, results[method])
  const act = acts[how]
  return void Promise.resolve(act === undefined ? "" : act()).then((said) => {
    say(said)
    answer(id, { stopReason: "end_turn" })
  })
})
