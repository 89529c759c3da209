// Measures one scenario of one store, in a process of its own:
// `node --expose-gc sessions-measure.mjs <store> <scenario> [effort]`.
// The last line it prints is the result as JSON.
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { makeScript } from "./script.mjs"
import { median } from "./workloads.mjs"

const [name, scenario, effort = 1] = process.argv.slice(2)
const isPeer = name.startsWith("lg-")
const { open } = await import(`./peers/sessions-${isPeer ? "langgraph" : "ours"}.mjs`)
const folder = mkdtempSync(join(tmpdir(), "bench-sessions-"))
const store = await open(name, folder)
let threads = 0
/** Another run may have used the same server. */
const newId = () => `${process.pid}-${Date.now()}-${++threads}`

/** What is on the disk, with SQLite's log written back. */
const bytes = () => {
  const files = readdirSync(folder)
  if (files.includes("threads.db")) {
    const database = new DatabaseSync(join(folder, "threads.db"))
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
  }
  return files.reduce((sum, file) => sum + (statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0), 0)
}

/** A script that notes when the model was first asked, and when each call came. */
const noting = (options) => {
  const script = makeScript(options)
  const marks = []
  const asked = []
  const noted = {
    ...script,
    turn: (length) => {
      asked.push(performance.now())
      return script.turn(length)
    },
    step: (n) => {
      marks.push(performance.now())
      return script.step(n)
    }
  }
  return { script: noted, marks, asked }
}

/** A thread that has so many messages. */
const filled = async (length) => {
  const threadId = newId()
  await store.fill(threadId, length, makeScript({ rounds: 0 }))
  return threadId
}

/** Milliseconds a round on a thread that has so many messages at least, without what it takes to begin. */
const rounds = async (threadId, length, count) => {
  const { asked, marks, script } = noting({ rounds: count, before: length })
  const run = store.make(script)
  const before = bytes()
  const began = performance.now()
  script.verify(await run(threadId))
  const skipped = Math.floor(count / 5)
  return {
    round: (marks.at(-1) - marks[skipped]) / (count - 1 - skipped),
    first: asked[0] - began,
    bytes: (bytes() - before) / count
  }
}

/** Rounds that are measured: a peer writes all of the thread at each step. */
const countOf = (length) => Math.ceil((isPeer ? (length >= 10_000 ? 10 : 30) : 300) * (effort < 1 ? 0.5 : 1))

const atLength = async (length) => {
  // What it took to make the thread is not the runs'. It is there for all of them, and grows by them.
  const threadId = await filled(length)
  globalThis.gc?.()
  for (let spent = 0, began = performance.now(); spent < 1_500 * effort; spent = performance.now() - began) {
    await rounds(await filled(10), 10, isPeer ? 30 : 300)
  }
  const samples = []
  for (let time = 0; time < (effort < 1 || (isPeer && length >= 1_000) ? 1 : 9); time++) {
    const id = length < 10_000 ? await filled(length) : threadId
    samples.push(await rounds(id, length, countOf(length)))
  }
  const of = (key) => median(samples.map((sample) => sample[key]))
  return { value: of("round") * 1_000, first: of("first"), bytes: of("bytes") }
}

const timed = async (work, times) => {
  const measured = []
  for (let time = 0; time < times; time++) {
    const began = performance.now()
    await work()
    measured.push(performance.now() - began)
  }
  return median(measured)
}

/** Milliseconds of some work on a store that has nothing of its threads in memory, where there are such. */
const coldly = async (work, times) => {
  const measured = []
  for (let time = 0; time < times; time++) {
    const other = (await store.reopen?.()) ?? store
    globalThis.gc?.()
    measured.push(await work(other))
    if (other !== store) await other.close()
  }
  return median(measured)
}

/** A thread of 10,000 messages is loaded, a run begins with it, and it is forked; and one of 10 is. */
const long = async () => {
  const [threadId, short] = [await filled(10_000), await filled(10)]
  const times = effort < 1 ? 5 : 20
  const load = await coldly((other) => timed(() => other.load(threadId), 1), Math.ceil(times / 2))
  const cold = await coldly(
    async (other) => {
      const { asked, script } = noting({ before: 10_000 })
      const run = other.make(script)
      // The first write of a process makes a log, which is synced.
      if (other !== store) await other.fill(newId(), 10, makeScript())
      const began = performance.now()
      await run(threadId)
      return asked[0] - began
    },
    Math.ceil(times / 2)
  )
  if (store.fork === undefined) return { value: load, cold }
  await timed(() => store.fork(short), times)
  const fork = await timed(() => store.fork(threadId), times)
  return { value: load, cold, fork, growth: fork / (await timed(() => store.fork(short), times)) }
}

/** 1,000 threads at once, five rounds each, a model that waits 20 ms: 120 ms at best. In waves, each of other threads. */
const many = async () => {
  const make = (latency) => {
    const script = makeScript({ rounds: 5, latency })
    const run = store.make(script)
    return async (threadId) => script.verify(await run(threadId))
  }
  await Promise.all(Array.from({ length: 50 }, () => make(0)(newId())))
  const wave = async () => {
    const agents = Array.from({ length: 1_000 }, () => make(20))
    const began = performance.now()
    await Promise.all(agents.map((run) => run(newId())))
    return performance.now() - began
  }
  const waves = []
  while (waves.length < 3) waves.push(await wave())
  const ms = median(waves)
  return { value: ms / (6 * 20), perSecond: (1_000 * 5 * 1_000) / ms, memory: process.resourceUsage().maxRSS / 1_000 }
}

/**
 * What it costs to store the parts of an answer while it is streamed: processor time with them ÷ without, in turns, of an
 * answer as fast as it can be, and (`paced`) of 20 at once, of 100 chunks a second each, from a model that costs nothing.
 */
const parts = async () => {
  const [off, on] = [store.streaming(false), store.streaming(true)]
  const chunks = (count, pause) =>
    async function* () {
      for (let n = 0; n < count; n++) {
        if (pause > 0) await new Promise((done) => setTimeout(done, pause))
        yield `word${n % 10} `
      }
    }
  const ratio = async (work, times) => {
    const ratios = []
    for (let time = 0; time <= times; time++) {
      const costs = []
      for (const run of time % 2 === 0 ? [off, on] : [on, off]) {
        globalThis.gc?.()
        const began = processor()
        await work(run)
        costs.push(processor() - began)
      }
      const [first, second] = costs
      if (time > 0) ratios.push(time % 2 === 0 ? second / first : first / second)
    }
    return median(ratios)
  }
  const processor = () => {
    const { system, user } = process.cpuUsage()
    return system + user
  }
  const answer = (run) => run(newId(), chunks(200_000, 0))
  const answers = (run) => Promise.all(Array.from({ length: 20 }, () => run(newId(), chunks(200, 10))))
  return {
    value: await ratio(answer, effort < 1 ? 10 : 30),
    paced: await ratio(answers, effort < 1 ? 2 : 6)
  }
}

const measure = { L10: () => atLength(10), L100: () => atLength(100), L1000: () => atLength(1_000) }
const result = await { ...measure, L10000: () => atLength(10_000), long, many, parts }[scenario]()
await store.close()
rmSync(folder, { recursive: true, force: true })
console.log(JSON.stringify(result))
process.exit(0)
