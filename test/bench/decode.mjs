// The cost of decoding a provider's events beside that of parsing their JSON, in microseconds an event (median of 15).
// node --conditions=@effect-deepagents/source test/bench/decode.mjs
import { makeChatDecoder } from "../../src/models/internal/openai/chatDecode.ts"
import { makeToolNames } from "../../src/models/internal/turn/toolNames.ts"

const count = 5_000
const piece = (delta, finish = null) =>
  JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "served",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  })
const call = (index, args) =>
  piece({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name: "read", arguments: args } }] })
const many = (make) => Array.from({ length: count }, (_, index) => make(index))
const args = (index) => JSON.stringify({ path: `/src/file-${index}.ts`, from: index, lines: [1, 2, 3] })
const turns = {
  text: [...many((index) => piece({ content: ` word${index}` })), piece({}, "stop")],
  calls: [...many((index) => call(index, args(index))), piece({}, "tool_calls")],
  "malformed calls": [...many((index) => call(index, args(index).slice(0, -4))), piece({}, "tool_calls")]
}
const origin = { provider: "bench", model: "served", secrets: [] }
const names = makeToolNames([{ name: "read" }], 64)
const sink = { emit: () => {}, unknown: () => {} }

const decode = (lines) => {
  const context = {
    origin,
    names,
    restore: undefined,
    price: (usage) => usage,
    makeId: () => "id",
    thinkTags: undefined
  }
  const decoder = makeChatDecoder(context, sink)
  for (const line of lines) decoder.take(JSON.parse(line))
  decoder.end()
}
const parse = (lines) => lines.forEach((line) => JSON.parse(line))
const median = (work) => {
  const times = Array.from({ length: 20 }, () => {
    const from = performance.now()
    work()
    return ((performance.now() - from) * 1000) / count
  })
  return times
    .slice(5)
    .sort((left, right) => left - right)[7]
    .toFixed(2)
}
for (const [name, lines] of Object.entries(turns)) {
  console.log(`${name}: ${median(() => decode(lines))} µs decoded, ${median(() => parse(lines))} µs parsed alone`)
}
