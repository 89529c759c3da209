/** Every parser and decoder on inputs that make parsers slow: its cost may grow a little faster than its input and no more, and it never throws. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Approval, Message, ToolCall } from "effect-deepagents"
import { decodeText, mimeTypeOf } from "../../src/backends/internal/files/mime.ts"
import { compileGlob } from "../../src/backends/internal/glob/glob.ts"
import * as Ignore from "../../src/backends/internal/glob/ignore.ts"
import * as Patch from "../../src/backends/internal/patch/format.ts"
import { apply } from "../../src/backends/internal/patch/text.ts"
import * as PathGlob from "../../src/backends/internal/permissions/glob.ts"
import { cutMiddle } from "../../src/backends/internal/posix/output.ts"
import { compileSearch } from "../../src/backends/internal/search/matcher.ts"
import { re2 } from "../../src/backends/internal/search/re2.ts"
import { fileQueryOf, searchText } from "../../src/backends/internal/search/search.ts"
import { diagnose } from "../../src/backends/internal/text/diagnosis.ts"
import { applyEdits } from "../../src/backends/internal/text/edit.ts"
import { usesCrlf } from "../../src/backends/internal/text/endings.ts"
import { aspects, fold } from "../../src/backends/internal/text/fold.ts"
import { windowOf } from "../../src/backends/internal/text/lines.ts"
import { nearestLine } from "../../src/backends/internal/text/nearest.ts"
import { resolveName } from "../../src/core/loop/toolset.ts"
import { coerce } from "../../src/core/schema/coerce.ts"
import { canonical } from "../../src/core/schema/jsonTree.ts"
import { mend } from "../../src/core/thread/history.ts"
import { decisionOn, requestFor } from "../../src/core/thread/suspension.ts"
import { parse as parseFrontmatter } from "../../src/middleware/internal/skills/frontmatter.ts"
import { pieceOf, sectionOf } from "../../src/middleware/internal/summarization/transcript.ts"
import { detailOf, overflowOf as aiOverflowOf } from "../../src/models/bridges/internal/effectAi/failures.ts"
import { filePart } from "../../src/models/bridges/internal/effectAi/media.ts"
import { makeDecoder } from "../../src/models/internal/anthropic/decode.ts"
import { makeChatDecoder } from "../../src/models/internal/openai/chatDecode.ts"
import { errorBody } from "../../src/models/internal/openai/failure.ts"
import { makeResponsesDecoder } from "../../src/models/internal/openai/responsesDecode.ts"
import { isTooDeep } from "../../src/models/internal/schema/nesting.ts"
import { makeCallIds } from "../../src/models/internal/turn/callIds.ts"
import { makeThinkSplitter, thinkTags } from "../../src/models/internal/turn/thinkTags.ts"
import { sortCalls, toCall } from "../../src/models/internal/turn/toolCalls.ts"
import { providerError } from "../../src/models/internal/wire/errors.ts"
import { overflowOf } from "../../src/models/internal/wire/overflow.ts"
import { hide, textsOf } from "../../src/models/internal/wire/secrets.ts"
import { gemma } from "../../src/models/local/internal/codecs/gemma.ts"
import { hermes } from "../../src/models/local/internal/codecs/hermes.ts"
import { lfm2 } from "../../src/models/local/internal/codecs/lfm2.ts"
import { qwenXml } from "../../src/models/local/internal/codecs/qwenXml.ts"
import { matchesArguments } from "../../src/rules/internal/patterns.ts"
import { transcript } from "../../src/sessions/internal/branch/transcript.ts"
import * as Codec from "../../src/sessions/internal/codec.ts"
import * as Record from "../../src/sessions/internal/jsonl/record.ts"
import * as Words from "../../src/sessions/internal/words.ts"
import * as Untrusted from "../../src/support/text/untrusted.ts"
import { words } from "../../src/support/text/words.ts"
import { yaml } from "../../src/support/text/yaml.ts"
import { deltas } from "../models/internal/llama/codecs/decode.ts"
import { growth, type Work } from "./growth.ts"
import { inPieces, type Parser, slowOn, textOf } from "./pieces.ts"

// Loaded once, so that plain functions are measured.
await Effect.runPromise(Effect.all([re2, yaml]))

const origin = { provider: "test", model: "test", secrets: ["sk-canary-0123456789", "header-canary"] }
const price = <A>(usage: A): A => usage
const names = { has: () => true, wire: (name: string) => name, own: (name: string) => name }
const context = { origin, names, restore: undefined, price, makeId: () => "id" }
const sink = { emit: () => undefined, unknown: () => undefined }

const patchOf = (text: string): string =>
  `*** Begin Patch\n*** Update File: a.txt\n@@\n${text
    .split("\n")
    .map((line) => `-${line}`)
    .join("\n")}\n*** End Patch`

const failed = (description: string) =>
  ({ _tag: "InvalidRequestError", description, http: { body: description } }) as unknown as Parameters<
    typeof detailOf
  >[0]

const parsers: Readonly<Record<string, Parser>> = {
  "think tags": (text) => {
    const splitter = makeThinkSplitter(thinkTags)
    for (const piece of inPieces(text, 7)) splitter.push(piece)
    splitter.end()
    const inside = makeThinkSplitter({ ...thinkTags, inside: true })
    for (const piece of inPieces(text, 7)) inside.push(piece)
    inside.end()
  },
  "lfm2's codec": (text) => deltas(lfm2, inPieces(text, 9)),
  "hermes' codec": (text) => deltas(hermes, inPieces(text, 9)),
  "Qwen's codec": (text) => deltas(qwenXml, inPieces(text, 9)),
  "Gemma's codec": (text) => deltas(gemma, inPieces(text, 9)),
  "lfm2's codec, in a call": (text) => deltas(lfm2, ["<|tool_call_start|>[f(a=", ...inPieces(text, 9)]),
  "hermes' codec, in a call": (text) => deltas(hermes, ['<tool_call>{"name":"f","arguments":', ...inPieces(text, 9)]),
  "Qwen's codec, in a call": (text) =>
    deltas(qwenXml, ["<tool_call><function=f><parameter=a>\n", ...inPieces(text, 9)]),
  "Gemma's codec, in a call": (text) => deltas(gemma, ["<|tool_call>call:f{a:", ...inPieces(text, 9)]),
  "arguments of a call": (text) => {
    toCall({ id: "a", name: "b", raw: text, cut: false })
    toCall({ id: "a", name: "b", raw: JSON.stringify({ a: text }), cut: false })
  },
  "an overflow": (text) => overflowOf("", text, 400),
  "an overflow of effect/ai": (text) => aiOverflowOf({ description: text }),
  "the detail of effect/ai": (text) => detailOf(failed(text)),
  "an error of a provider": (text) => providerError(origin, { status: 400, message: text, code: text, type: text }),
  "an error body": (text) => {
    errorBody(text)
    errorBody(JSON.stringify({ detail: [{ msg: text, loc: [text] }] }))
  },
  "what must not be in an error": (text) =>
    hide(text, { secrets: [text], said: () => textsOf({ messages: inPieces(text, 50), all: text }, "request") }),
  "an error that repeats a conversation": (text) =>
    hide(textOf("x y ", 10_000), { secrets: [], said: () => textsOf(inPieces(text, 20), "request") }),
  "Chat Completions": (text) => {
    const decoder = makeChatDecoder({ ...context, thinkTags }, sink)
    for (const [at, content] of inPieces(text, 13).entries()) {
      const call = { index: at, id: `${at}`, function: { name: "f", arguments: content } }
      const part = { type: "reasoning.text", index: at % 2, text: content }
      decoder.take({ choices: [{ delta: { content, tool_calls: [call], reasoning_details: [part] } }] })
    }
    decoder.take({ choices: [{ delta: {}, finish_reason: "stop" }] })
    decoder.end()
  },
  Responses: (text) => {
    const decoder = makeResponsesDecoder(context, sink)
    const items = inPieces(text, 13).map((args, at) => ({
      type: at % 2 === 0 ? "function_call" : "message",
      id: `${at}`,
      call_id: `c${at}`,
      name: "f",
      arguments: args,
      content: [{ type: "output_text", text: args }]
    }))
    for (const [output_index, item] of items.entries()) {
      decoder.take({ type: "response.output_item.added", output_index, item })
      decoder.take({ type: "response.output_text.delta", output_index: 0, delta: item.arguments })
    }
    const renamed = items.map((item) => ({ ...item, id: `other ${item.id}` })).toReversed()
    decoder.take({ type: "response.completed", response: { output: renamed } })
    decoder.end()
  },
  Messages: (text) => {
    const fail = () => {
      throw new Error("the answer was not accepted")
    }
    const decoder = makeDecoder({ names, priced: (usage) => usage, makeId: () => "id", fail }, sink)
    decoder.take({ type: "message_start", message: {} })
    for (const [index, partial_json] of inPieces(text, 13).entries()) {
      const content_block = { type: "tool_use", id: "a", name: `f${index}`, input: {} }
      decoder.take({ type: "content_block_start", index, content_block })
      decoder.take({ type: "content_block_delta", index, delta: { partial_json } })
      decoder.take({ type: "content_block_delta", index: 0, delta: { partial_json } })
    }
    decoder.take({ type: "message_delta", delta: { stop_reason: "tool_use" } })
    decoder.take({ type: "message_stop" })
    decoder.end()
  },
  "many calls of one id": (text) =>
    sortCalls(inPieces(text, 13).map((raw) => ({ id: "a", name: "f", raw, cut: false }))),
  "ids of calls": (text) => {
    const ids = makeCallIds(9)
    for (const piece of inPieces(text, 13)) ids.take(piece)
  },
  "names of tools": (text) => {
    const tools = new Map(inPieces(text, 13).map((name) => [name, name]))
    return resolveName({ tools, folded: () => new Map() }, text)
  },
  nesting: (text) => isTooDeep(inPieces(text, 13).reduceRight<unknown>((inner, piece) => [piece, inner], null)),
  "canonical JSON": (text) => canonical({ [text]: text, list: [...inPieces(text, 13)] }),
  "arguments for a person": (text) => ToolCall.describeArguments({ [text]: text, list: [...inPieces(text, 13)] }),
  coercion: (text) => {
    const schema = {
      type: "object",
      properties: { a: { type: "array", items: { type: "number" } }, b: { type: "object" } }
    }
    return coerce(schema, { a: text, b: text, c: [...inPieces(text, 13)] })
  },
  frontmatter: (text) => {
    Effect.runSyncExit(parseFrontmatter(`---\n${text}\n---\nbody`, "a"))
    Effect.runSyncExit(parseFrontmatter(text, "a"))
  },
  "a patch": (text) => {
    Patch.parse(text)
    Patch.parse(`*** Begin Patch\n${text}\n*** End Patch`)
    Patch.parse(patchOf(text))
  },
  "a patch that is applied": (text) => {
    const patch = Patch.parse(patchOf(text.slice(0, text.length / 2)))
    if (patch._tag !== "Success") return undefined
    for (const change of patch.success.changes) if ("hunks" in change) apply(text, change.hunks, "a.txt")
    return undefined
  },
  "an edit": (text) => {
    const half = text.slice(0, Math.floor(text.length / 2))
    applyEdits(text, [{ old: half, new: "x" }])
    applyEdits(text, [{ old: `${half}~`, new: "x" }])
    applyEdits(text, [{ old: text.slice(0, 3), new: "xy", replaceAll: true }])
  },
  "why an edit does not match": (text) => diagnose(text, `${text.slice(0, Math.floor(text.length / 2))}~`),
  "a URL with data": (text) => filePart({ type: "image", source: { kind: "url", url: `data:${text}` } }),
  "the nearest line": (text) => nearestLine(text, text.slice(0, 100)),
  "a glob": (text) => {
    for (const pattern of [text, text.slice(0, 1_000), `${text.slice(0, 300)}b`]) {
      const glob = compileGlob(pattern)
      if (glob._tag === "Success") glob.success.matches(text.slice(0, 4_000))
    }
  },
  "an ignore file": (text) => {
    const rules = Ignore.extend(Ignore.none, "/", text)
    const lines = Ignore.extend(rules, "/", text.replaceAll(" ", "\n"))
    Ignore.isIgnored(lines, `/${text.slice(0, 250)}/b`, false)
  },
  permissions: (text) => {
    const glob = PathGlob.compile(`/${text.slice(0, 1_000)}`, true)
    if (glob._tag === "Success") PathGlob.coverage(glob.success, text.slice(0, 4_000).split("/"))
  },
  "a search": (text) => {
    for (const [pattern, regex] of [
      [text.slice(0, 200), true],
      ["(a*)*b", true],
      [text.slice(0, 200), false]
    ] as const) {
      const matcher = Effect.runSyncExit(compileSearch({ pattern, regex, ignoreCase: true }))
      if (matcher._tag === "Success") searchText("/a", text, matcher.value, fileQueryOf({ pattern, regex }))
    }
  },
  "text of others": (text) => {
    Untrusted.quote(text)
    Untrusted.oneLine(text)
    Untrusted.head(text, 1_000)
  },
  folding: (text) => fold(text, new Set(aspects)),
  "a window of a file": (text) => {
    usesCrlf(text)
    windowOf(text, { offset: 3, limit: 10 })
    const bytes = new TextEncoder().encode(text)
    windowOf(bytes)
    decodeText("/a", bytes)
    mimeTypeOf("/a", bytes)
    cutMiddle(text, 1_000)
  },
  "a transcript for a summary": (text) => {
    for (const message of messagesOf(text)) {
      pieceOf(message, 1)
      sectionOf(message, 1)
    }
  },
  "a transcript of a thread": (text) => transcript(messagesOf(text), 10_000),
  "an entry of a thread": (text) => {
    Codec.decodeLine(text)
    Codec.decodeHead(text)
    Codec.decodeLine(JSON.stringify({ v: 1, entry: { _tag: "MessageAppended", message: text } }))
    Record.decode(text)
  },
  "patterns of a policy": (text) => {
    const patterns = [`${text.slice(0, 8)}*${text.slice(0, 1)}*a*"*/*-*never`, "**a**a**a**b"]
    for (const command of patterns) {
      for (const way of ["closely", "exactly", "widely"] as const) {
        matchesArguments({ command }, [{ command: text }], way, new Map())
      }
    }
  },
  words: (text) => {
    const wanted = Words.phrases(text.slice(0, 200))
    words(text)
    const pace = { left: Number.POSITIVE_INFINITY }
    Effect.runSync(Words.matches(text, wanted, pace))
    Effect.runSync(Words.excerpt(text, wanted, pace))
  }
}

const messagesOf = (text: string): ReadonlyArray<Message.Message> => [
  Message.human(text),
  Message.ai(text, {
    toolCalls: [{ id: text.slice(0, 50), name: text.slice(0, 50), arguments: { a: text, b: [...inPieces(text, 13)] } }],
    malformedToolCalls: [{ id: "b", raw: text, problem: "none" }]
  }),
  Message.tool(text, { toolCallId: "a", toolName: text })
]

describe("cost grows as the input does", () => {
  for (const [name, parse] of Object.entries(parsers)) {
    it(
      name,
      () => {
        expect(slowOn(parse)).toEqual([])
      },
      300_000
    )
  }

  it("requestFor and decisionOn, for the calls of a turn that wait for decisions", () => {
    const prepare = (size: number) => {
      const ids = Array.from({ length: size }, (_, index) => `call_${index}`)
      const requests = ids.map((id) =>
        Approval.Request.make({
          id,
          runId: "run",
          callId: id,
          path: ["agent"],
          toolName: "tool",
          arguments: {},
          description: "",
          allow: ["approve"],
          at: 0
        })
      )
      const decisions = requests.map((request) => Approval.approve(request))
      return () => {
        const suspension = { messageId: "turn", requests, decisions, children: {}, answers: [], unknown: [] }
        return ids.filter((id) => {
          const request = requestFor(suspension, ["agent"], id, {})
          return request !== undefined && decisionOn(suspension, request) !== undefined
        })
      }
    }
    expect(prepare(32)()).toHaveLength(32)
    expect(growth(prepare, 4_096)).toBeUndefined()
  })

  it("mend, for the calls of a turn that nobody answered", () => {
    for (const part of ["toolCalls", "malformedToolCalls"] as const) {
      const prepare = (size: number): Work => {
        const ids = Array.from({ length: size }, (_, index) => `c${index}`)
        const calls = ids.map((id) => ({ id, name: "t", arguments: {}, raw: "{", problem: "it ends" }))
        const history = [Message.human("go"), Message.ai("", { [part]: calls, stopReason: "toolCalls" })]
        return () => mend(history, null)
      }
      expect(growth(prepare, 32_768)).toBeUndefined()
    }
  })
})
