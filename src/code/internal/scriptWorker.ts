/**
 * The thread in which scripts run. It has one QuickJS, with a memory of its own that can't grow beyond a limit, and one
 * runtime for each script. A script that nothing else stops ends with its thread.
 */
import * as NodeModule from "node:module"
import { parentPort, workerData } from "node:worker_threads"
import variant from "@jitl/quickjs-wasmfile-release-sync"
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime
} from "quickjs-emscripten-core"
import { type Fault, maxSaid, type Order, type Report, scriptName } from "./messages.ts"
import { prelude } from "./prelude.ts"

const port = parentPort

/** A page of WebAssembly memory. */
const page = 65_536

/** The stack of a script, in bytes: below that of WebAssembly, whose overflow would end the thread. */
const maxStack = 256 * 1024

/** The script that runs, with the functions of its prelude. */
interface RunningScript {
  readonly runtime: QuickJSRuntime
  readonly context: QuickJSContext
  readonly handles: Array<QuickJSHandle>
  readonly time: number
  drain: QuickJSHandle | undefined
  settle: QuickJSHandle | undefined
  spent: number
  since: number
  isOver: boolean
}

const heap: number = workerData.heap
const memory = new WebAssembly.Memory({ initial: 256, maximum: Math.max(256, Math.ceil(heap / page)) })
// The types of the package describe its CommonJS half.
const engine = "default" in variant ? variant.default : variant
const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(engine, { wasmMemory: memory }))

let running: RunningScript | undefined

const timeOf = (script: RunningScript): number => script.spent + performance.now() - script.since

/** Runs code of the script, and counts its time. All that may call the script's code goes through here. */
const compute = <A>(script: RunningScript, work: () => A): A => {
  script.since = performance.now()
  const result = work()
  script.spent = timeOf(script)
  script.since = performance.now()
  return result
}

const failed = (id: number, script: RunningScript | undefined, fault: Fault, message: string, stack = ""): Report => ({
  id,
  _tag: "Failed",
  spent: script?.spent ?? 0,
  fault: script?.isOver === true ? "Time" : fault,
  message,
  stack
})

/** Describes an error that passed the promise of a script: a syntax error, or an interruption. */
const failedWith = (id: number, script: RunningScript, error: QuickJSHandle, fault: Fault): Report => {
  const { context } = script
  const readText = (key: string): string =>
    compute(script, () => {
      const value = context.getProp(error, key)
      const text = context.typeof(value) === "string" ? context.getString(value) : ""
      value.dispose()
      return text
    })
  const [name, message, stack] = [readText("name"), readText("message"), readText("stack")]
  error.dispose()
  const text = `${name === "" ? "Error" : name}: ${message}`
  return failed(id, script, message === "out of memory" ? "Memory" : fault, text, stack)
}

/** Runs due jobs, and reports the new calls and lines of the script. */
const rest = (id: number, script: RunningScript): Report => {
  const { context, drain, runtime } = script
  if (drain === undefined) return failed(id, script, "Crashed", "The script has not begun.")
  const jobs = compute(script, () => runtime.executePendingJobs())
  if (jobs.error !== undefined) return failedWith(id, script, jobs.error, "Threw")
  const drained = compute(script, () => context.callFunction(drain, context.undefined))
  if (drained.error !== undefined) return failedWith(id, script, drained.error, "Threw")
  const text = context.getString(drained.value)
  drained.value.dispose()
  if (script.isOver) return failed(id, script, "Time", "interrupted")
  if (text === "") {
    return failed(id, script, "Size", `The script returned, printed or passed more than ${maxSaid} characters at once.`)
  }
  return { id, _tag: "Rest", spent: script.spent, held: memory.buffer.byteLength, said: text }
}

/** Calls a function of the prelude with a handle. */
const callWith = (script: RunningScript, target: QuickJSHandle, argument: QuickJSHandle) => {
  const called = compute(script, () => script.context.callFunction(target, script.context.undefined, argument))
  argument.dispose()
  return called
}

/** The script as an expression. The wrapper comes first: only a function may return. */
const wrapped = (source: string): string => `(async () => {${source}\n})`

const isUnsupported = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX"

/** Takes the types out of a script. An enum is translated, and moves the lines behind it. */
const strip = (source: string): Promise<string> =>
  Promise.resolve(wrapped(source))
    .then((code) => NodeModule.stripTypeScriptTypes(code, { mode: "strip" }))
    .catch((cause: unknown) =>
      isUnsupported(cause)
        ? NodeModule.stripTypeScriptTypes(wrapped(source), { mode: "transform" })
        : Promise.reject(cause)
    )

/** Describes a syntax error with its line, which the stack begins with. */
const describeSyntax = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "the script can't be read"
  const [, line, text] = /^\S*:(\d+)\n(?:.*\n)*?(.*)\n *\^/.exec(cause.stack ?? "") ?? []
  const where =
    line === undefined ? "" : ` (line ${line}: ${(text ?? "").replace("(async () => {", "").trim().slice(0, 200)})`
  return `${cause.message.split("\n")[0] ?? ""}${where}`
}

const begin = async ({
  id,
  memory: most,
  setup,
  source,
  time
}: Order & { readonly _tag: "Begin" }): Promise<Report> => {
  const code = await strip(source).catch((cause: unknown) => ({ problem: describeSyntax(cause) }))
  if (typeof code !== "string") return failed(id, undefined, "Syntax", `SyntaxError: ${code.problem}`)
  const runtime = quickjs.newRuntime()
  const context = runtime.newContext()
  const script: RunningScript = {
    runtime,
    context,
    handles: [],
    time,
    drain: undefined,
    settle: undefined,
    spent: 0,
    since: performance.now(),
    isOver: false
  }
  running = script
  runtime.setMemoryLimit(most)
  runtime.setMaxStackSize(maxStack)
  runtime.setInterruptHandler(() => {
    if (timeOf(script) > time) script.isOver = true
    return script.isOver
  })
  const world = compute(script, () => context.evalCode(prelude, "prelude.js"))
  if (world.error !== undefined) return failedWith(id, script, world.error, "Crashed")
  const bridge = callWith(script, world.value, context.newString(setup))
  world.value.dispose()
  if (bridge.error !== undefined) return failedWith(id, script, bridge.error, "Crashed")
  const start = context.getProp(bridge.value, "start")
  script.drain = context.getProp(bridge.value, "drain")
  script.settle = context.getProp(bridge.value, "settle")
  script.handles.push(bridge.value, start, script.drain, script.settle)
  const main = compute(script, () => context.evalCode(code, scriptName))
  if (main.error !== undefined) return failedWith(id, script, main.error, "Syntax")
  const started = callWith(script, start, main.value)
  if (started.error !== undefined) return failedWith(id, script, started.error, "Threw")
  started.value.dispose()
  return rest(id, script)
}

const settle = ({ answers, id }: Order & { readonly _tag: "Settle" }): Report => {
  if (running?.settle === undefined) return failed(id, running, "Crashed", "There is no script to answer.")
  const settled = callWith(running, running.settle, running.context.newString(answers))
  if (settled.error !== undefined) return failedWith(id, running, settled.error, "Threw")
  settled.value.dispose()
  return rest(id, running)
}

/** Frees a script. A runtime that ran out of memory fails here, and its thread is given up. */
const reset = ({ id }: Order): Report => {
  for (const handle of running?.handles ?? []) handle.dispose()
  running?.context.dispose()
  running?.runtime.dispose()
  running = undefined
  return { id, _tag: "Clean", held: memory.buffer.byteLength }
}

const follow = async (order: Order): Promise<Report> => {
  switch (order._tag) {
    case "Begin":
      return begin(order)
    case "Settle":
      return settle(order)
    case "Reset":
      return reset(order)
  }
}

port?.on("message", (order: Order) => {
  void follow(order)
    .catch((cause: unknown) =>
      failed(order.id, running, "Crashed", cause instanceof Error ? cause.message : "it broke")
    )
    .then((report) => port.postMessage(report))
})

port?.postMessage({ id: 0, _tag: "Ready" } satisfies Report)
