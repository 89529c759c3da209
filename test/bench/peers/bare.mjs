// No library: the least that an agent loop can cost.
import { historyOf, prompt } from "../script.mjs"

const user = (content) => ({ role: "user", content })
const ai = (content, toolCalls = []) => ({ role: "assistant", content, toolCalls })

const answer = ({ id }, content) => ({ role: "tool", id, content })

export const history = (length) =>
  historyOf(length, { user, ai, answer, call: ({ id, json, name }, text) => ai(text, [{ id, name, json }]) })

export const make = (script) => {
  const tools = { step: async ({ n }) => script.step(n) }
  const ask = async (messages, onPart) => {
    if (script.batch === 0) for await (const part of script.turn(messages.length)) onPart(part)
    else for await (const batch of script.batches()) for (const part of batch) onPart(part)
  }
  const call = async ({ id, name, json }) => ({ role: "tool", id, content: await tools[name](JSON.parse(json)) })

  return async (before = []) => {
    const messages = [{ role: "system", content: prompt }, ...before, user("go")]
    let streamed = ""
    while (true) {
      let text = ""
      const calls = []
      await ask(messages, (part) => {
        if (typeof part === "string") text += part
        else calls.push(part)
      })
      streamed += text
      messages.push(ai(text, calls))
      if (calls.length === 0) return streamed
      messages.push(...(await Promise.all(calls.map(call))))
    }
  }
}
