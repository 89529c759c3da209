// What every peer is made to do. The "model" speaks a few words and asks for tools until `rounds` are over, then it
// gives its answer. It costs nothing, keeps count, and `verify` says whether the agent did all of it, in order.

const words = Array.from({ length: 100 }, (_, index) => `word${index} `)

/** What the peers tell their model and their tool. */
export const prompt = "You are a benchmark."
export const description = "Do one step"

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * `rounds` with `texts` words and `calls` tool calls each, then `answer` words. `latency` ms before the first word of a
 * turn, `toolTime` ms a call, `before` messages of history, `batch` words at once (0: one at a time).
 */
export const makeScript = (options = {}) => {
  const defaults = { rounds: 0, texts: 3, answer: 3, calls: 1, latency: 0, toolTime: 0, before: 0, batch: 0 }
  const script = { ...defaults, ...options }
  const nothing = { turns: 0, calls: 0, sum: 0, missing: 0 }
  const seen = { ...nothing }
  const total = script.rounds * script.calls

  /** One turn of the model, which was sent `length` messages: strings are text, objects are tool calls. */
  const turn = async function* (length) {
    const round = seen.turns++
    seen.missing = Math.max(seen.missing, script.before + 1 + 2 * round - length)
    const isLast = round >= script.rounds
    if (script.latency > 0) await sleep(script.latency)
    for (let i = 0, end = isLast ? script.answer : script.texts; i < end; i++) yield words[i % 100]
    if (isLast) return
    for (let i = 0; i < script.calls; i++) {
      const n = round * script.calls + i
      yield { id: `call_${n}`, name: "step", args: { n }, json: `{"n":${n}}` }
    }
  }

  const batched = Array.from({ length: script.batch > 0 ? Math.ceil(script.answer / script.batch) : 0 }, (_, index) => {
    const start = index * script.batch
    return Array.from({ length: Math.min(script.batch, script.answer - start) }, (_, at) => words[(start + at) % 100])
  })

  /** An answer without tools, in arrays of `batch`. */
  const batches = async function* () {
    seen.turns++
    yield* batched
  }

  /** The tool. */
  const step = (n) => {
    seen.calls++
    seen.sum += n
    return script.toolTime > 0 ? sleep(script.toolTime).then(() => `ok ${n}`) : `ok ${n}`
  }

  const speech = (length) => Array.from({ length }, (_, index) => words[index % 100]).join("")
  const expected = speech(script.texts).repeat(script.rounds) + speech(script.answer)

  /** Throws unless the run asked and called as often as it should and streamed exactly `text`. Starts anew. */
  const verify = (text) => {
    const { turns, calls, sum, missing } = seen
    Object.assign(seen, nothing)
    const faults = [
      turns !== script.rounds + 1 && `the model was asked ${turns} times, not ${script.rounds + 1}`,
      calls !== total && `the tool ran ${calls} times, not ${total}`,
      sum !== (total * (total - 1)) / 2 && "the tool got wrong arguments",
      missing > 0 && `the model was sent ${missing} messages too few`,
      text !== expected && `streamed ${text.length} characters, not the ${expected.length} expected: ${text.slice(-60)}`
    ].filter(Boolean)
    if (faults.length > 0) throw new Error(faults.join("; "))
  }

  return { ...script, turn, batches, step, verify }
}

const result = words.join("").repeat(6).slice(0, 4_000)

/**
 * What was done before, `length` messages of it: again and again a question, a call of the tool, its result of 4,000
 * characters, and an answer. Each of the four gives a message, or a list of what the library makes of one.
 */
export const historyOf = (length, { user, ai, call, answer }) =>
  Array.from({ length }, (_, index) => {
    const n = index >> 2
    const id = `before_${n}`
    if (index % 4 === 0) return user(`question ${n}: ${words.slice(0, 20).join("")}`)
    if (index % 4 === 1) return call({ id, name: "step", args: { n }, json: `{"n":${n}}` }, `I look at ${n}`)
    if (index % 4 === 2) return answer({ id, name: "step" }, `${n}: ${result}`)
    return ai(`answer ${n}: ${words.slice(0, 20).join("")}`)
  }).flat()

/** A long conversation: like `historyOf`, with about 120 characters in each message. */
export const longHistoryOf = (length, user, ai) => {
  const filler = words.slice(0, 14).join("")
  return Array.from({ length }, (_, index) =>
    index % 2 === 0 ? user(`question ${index}: ${filler}`) : ai(`answer ${index}: ${filler}`)
  )
}

/** The summary that the model gives, and what is said after it. */
export const summary = "They talked about many words."

/**
 * A model that has `count` sub-agents do a task each, at once, and then gives its answer; a sub-agent answers at once.
 * `latency` ms before each turn. `first` is what the conversation begins with, `length` how many messages it has.
 */
export const makeFan = (count, latency) => {
  const seen = { children: 0, turns: 0 }
  const turn = async function* (first, length) {
    await sleep(latency)
    if (first.startsWith("child ")) {
      seen.children++
      yield "done"
    } else if (seen.turns++ === 0) {
      for (let n = 0; n < count; n++) {
        const args = { description: `child ${n}`, subagent_type: "general-purpose" }
        yield { id: `call_${n}`, name: "task", args, json: JSON.stringify(args) }
      }
    } else if (length < count + 2) throw new Error(`the model was sent ${length} messages only`)
    else yield "all done"
  }
  const verify = (text) => {
    if (seen.children !== count) throw new Error(`${seen.children} sub-agents were asked, not ${count}`)
    if (!text.endsWith("all done")) throw new Error(`it ended with ${text.slice(-60)}`)
    Object.assign(seen, { children: 0, turns: 0 })
  }
  return { count, turn, verify }
}
