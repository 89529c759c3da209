/**
 * The world of a script, as a program of the guest. It evaluates to a function from the setup to `drain`, `settle` and
 * `start`. The host gives no function and no object: what a script does leaves it as a text.
 *
 * The script may replace every built-in function, so the bridge holds the few that it needs, and adds texts instead of
 * filling lists.
 */
export const prelude = String.raw`(setup => {
"use strict"
const parse = JSON.parse, stringify = JSON.stringify, Promise_ = Promise, Error_ = Error, TypeError_ = TypeError
const String_ = String, Array_ = Array, create = Object.create, freeze = Object.freeze, construct = Reflect.construct
const isArray = Array.isArray, imul = Math.imul, RealDate = Date
const { seed, now, tools: names, calls: most, size, args } = parse(setup)

let said = "", begun = 0
const pending = create(null)
const say = (id, kind, name, json) => {
  said += (said === "" ? "[" : ",[") + id + "," + stringify(kind) + "," + stringify(name) + "," + stringify(json) + "]"
}
const jsonOf = (what, value) => {
  const json = stringify(value)
  if (json === undefined) throw new TypeError_(what + ": give it JSON, not a " + typeof value)
  return json
}
const ask = (kind, name, value) => new Promise_((resolve, reject) => {
  const json = jsonOf(name, value)
  if (begun >= most) {
    const error = new Error_("The script may make " + most + " calls, and has made them.")
    error.name = "LimitError"
    throw error
  }
  const id = ++begun
  pending[id] = { resolve, reject }
  say(id, kind, name, json)
})

// Chance and time
let state = seed >>> 0
Math.random = () => {
  state = (state + 0x6d2b79f5) >>> 0
  let t = imul(state ^ (state >>> 15), 1 | state)
  t = (t + imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}
let ticks = now
const Clock = function Date(...parts) {
  if (!new.target) return new RealDate(ticks++).toString()
  return construct(RealDate, parts.length === 0 ? [ticks++] : parts, new.target)
}
Clock.prototype = RealDate.prototype
Clock.prototype.constructor = Clock
Clock.UTC = RealDate.UTC
Clock.parse = RealDate.parse
Clock.now = () => ticks++
globalThis.Date = Clock
for (const name of ["performance", "WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics"]) delete globalThis[name]

const define = (name, value) => {
  Object.defineProperty(globalThis, name, { value, enumerable: true, writable: true, configurable: true })
}

// Tools
const known = create(null)
const toolOf = name => (args = {}) => ask("tool", name, args)
for (const name of names) known[name] = toolOf(name)
define("tools", new Proxy(freeze(known), {
  get: (target, name) => name in target || typeof name === "symbol" || name === "then" || name === "toJSON"
    ? target[name]
    : toolOf(name)
}))
define("searchTools", (words, limit = 5) => ask("search", "searchTools", { words: String_(words), limit }))
define("describeTool", name => ask("describe", "describeTool", { name: String_(name) }))

// Agents
const agent = (prompt, options = {}) => {
  const given = typeof prompt === "object" && prompt !== null ? prompt : { ...options, prompt }
  return ask("agent", "agent", {
    prompt: String_(given.prompt ?? given.description ?? ""),
    agent: given.agent ?? given.agentType ?? given.subagentType,
    session: given.session,
    schema: given.schema ?? given.responseSchema,
    label: given.label,
    phase: given.phase
  })
}
define("agent", agent)
define("task", agent)
const tellFailure = (what, error) => {
  print([what + " failed: " + ((error && error.message) || error)])
  return null
}
define("parallel", async (tasks, { concurrency = Infinity } = {}) => {
  const all = [...tasks], results = new Array_(all.length)
  let next = 0
  const work = async () => {
    while (next < all.length) {
      const at = next++
      try { results[at] = await (typeof all[at] === "function" ? all[at]() : all[at]) }
      catch (error) { results[at] = tellFailure("Task " + (at + 1) + " of parallel", error) }
    }
  }
  const workers = []
  const most = concurrency >= 1 ? concurrency : 1
  for (let at = 0; at < Math.min(most, all.length); at++) workers.push(work())
  for (const one of workers) await one
  return results
})
define("pipeline", async (items, ...stages) => {
  const one = async (item, at) => {
    let value = item
    try { for (const stage of stages) value = await stage(value, item, at) }
    catch (error) { return tellFailure("Item " + (at + 1) + " of pipeline", error) }
    return value
  }
  const results = [], works = [...items].map(one)
  for (const work of works) results.push(await work)
  return results
})

// Words
const wordsOf = value => {
  if (typeof value === "string") return value
  if (value instanceof Error_) return value.name + ": " + value.message
  const json = typeof value === "object" ? stringify(value) : undefined
  return json === undefined ? String_(value) : json
}
const print = values => {
  let line = ""
  for (let at = 0; at < values.length; at++) line += (at === 0 ? "" : " ") + wordsOf(values[at])
  say(0, "text", "text", line)
}
const text = (...values) => print(values)
define("text", text)
define("log", text)
define("console", freeze({ log: text, info: text, warn: text, error: text, debug: text }))
define("phase", title => say(0, "phase", "phase", String_(title)))
define("askUser", question => ask("ask", "askUser", { question: String_(question) }))

// Memory and money
define("store", (key, value) => ask("store", "store", { key: String_(key), value }))
define("load", key => ask("load", "load", { key: String_(key) }))
define("budget", freeze({
  spent: () => ask("budget", "budget.spent", {}),
  remaining: () => ask("budget", "budget.remaining", {})
}))
define("args", parse(args))

const textOf = (value, other) => {
  try { return value === undefined || value === null ? other : String_(value) } catch { return other }
}
const fieldOf = (value, key) => {
  try { return value === null || (typeof value !== "object" && typeof value !== "function") ? undefined : value[key] } catch { return undefined }
}
return {
  drain: () => {
    const all = said.length > size ? "" : "[" + said + "]"
    said = ""
    return all
  },
  settle: json => {
    const answers = parse(json)
    for (let at = 0; at < answers.length; at++) {
      const answer = answers[at], id = answer[0], isDone = answer[1], value = answer[2]
      const waiting = pending[id]
      if (waiting === undefined) continue
      delete pending[id]
      if (isDone) {
        waiting.resolve(value)
        continue
      }
      const error = new Error_(value.message)
      error.name = value.name
      if (value.reason !== undefined) error.reason = value.reason
      waiting.reject(error)
    }
  },
  start: async main => {
    try {
      const json = stringify(await main())
      say(0, "return", "return", json === undefined ? "null" : json)
    } catch (error) {
      const name = textOf(fieldOf(error, "name"), "Error"), message = textOf(fieldOf(error, "message"), error === null ? "null" : textOf(error, "undefined"))
      const stack = textOf(fieldOf(error, "stack"), "")
      say(0, "throw", name, stringify(message) + "\n" + stringify(stack))
    }
  }
}
})`
