/**
 * What the scripted model says, as a function of what it is shown. It understands nothing, but every name and number in
 * it comes from the results of the tools that it called, or from the summary that took their place.
 */
import { Effect, Layer } from "effect"
import { type ChatModel, type Json, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { reportPath } from "./agent.ts"

interface Said {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: Json.JsonObject]>
}

type Messages = ReadonlyArray<Message.Message>

/** The results of a tool, the oldest first. */
const results = (messages: Messages, tool: string): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "tool" && message.toolName === tool && !message.isError ? [Message.text(message)] : []
  )

const matches = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  [...text.matchAll(pattern)].flatMap(([, found]) => (found === undefined ? [] : [found]))

const steps = ["Look at what is exported", "Have three questions answered", "Write the report"]

const plan = (done: number): readonly [string, Json.JsonObject] => [
  "write_todos",
  {
    todos: steps.map((content, index) => ({
      content,
      status: index < done ? "completed" : index === done ? "in_progress" : "pending"
    }))
  }
]

const pageLength = 180

const seen = (messages: Messages, number: number): string => {
  const rows = matches(results(messages, "read_file").at(-1) ?? "", /^ *\d+\t(.*)$/gm)
  return `Page ${number} of the list has ${rows.filter((row) => /export const/.test(row)).length} exported values.`
}

/** The file that a result was put in, as the pointer says, or the page that was read last. */
const listOf = (messages: Messages): string | undefined =>
  messages
    .flatMap((message): ReadonlyArray<Json.Json | undefined> =>
      message.role === "ai"
        ? message.toolCalls.flatMap(({ arguments: args, name }) => (name === "read_file" ? [args["file_path"]] : []))
        : matches(Message.text(message), /in the file (\S+):/g)
    )
    .findLast((path) => typeof path === "string")

const page = (messages: Messages, number: number): Said => ({
  text:
    number === 0
      ? "The list is too long for one look: it is in a file, which I read in pages."
      : seen(messages, number),
  calls: [["read_file", { file_path: listOf(messages) ?? "", offset: 1 + number * pageLength, limit: pageLength }]]
})

const questions = [
  ["Which errors are declared", "extends Schema.TaggedError<"],
  ["Which services are declared", "extends Context.Service<"],
  ["Which tests are by properties", "fc.assert("]
] as const

const delegate = (messages: Messages): Said => {
  const isLong = listOf(messages) !== undefined
  if (!isLong && !/^\//m.test(results(messages, "grep").join("\n"))) {
    return { text: "There is no TypeScript in this folder, so there is nothing to report." }
  }
  return {
    text: `${isLong ? seen(messages, 3) : "The list is short."}\nThat will do. Three researchers look for the rest at the same time.`,
    calls: [
      plan(1),
      ["compact_conversation", {}],
      ...questions.map(
        ([question, pattern]) =>
          ["task", { subagent_type: "researcher", description: `${question} here? Look for \`${pattern}\`.` }] as const
      )
    ]
  }
}

/** The turns of the reporter, one after the other. */
const turns: ReadonlyArray<(messages: Messages) => Said> = [
  () => ({
    reasoning: "Numbers must come from the files themselves, so I search and read before I write anything.",
    text: "I'll make a plan first.",
    calls: [plan(0)]
  }),
  () => ({ calls: [["grep", { pattern: "export const", glob: "*.ts", output_mode: "content", max_count: 10_000 }]] }),
  (messages) => page(messages, 0),
  (messages) => page(messages, 1),
  (messages) => page(messages, 2),
  delegate,
  (messages) => {
    const told = matches(messages.map(Message.text).join("\n"), /^(Page \d+ .*)$/gm)
    const report = [
      "# What is in this folder",
      ...results(messages, "task").map((answer) => `\n${answer}`),
      "\n## What I remember of the list",
      ...told.map((line) => `- ${line}`),
      ""
    ].join("\n")
    return { calls: [plan(2), ["write_file", { file_path: reportPath, content: report }]] }
  },
  (messages) =>
    results(messages, "write_file").length > 0
      ? { text: "The report is written.", calls: [plan(3)] }
      : { text: "I may not write the report, so this is all: ask the researchers." },
  () => ({ text: "The report has the answers to three questions, and what is left of the list after the summary." })
]

const researcher = (messages: Messages): Said => {
  const [pattern = ""] = matches(Message.text(messages[0] ?? Message.human("")), /`(.*)`/g)
  if (results(messages, "grep").length === 0) {
    return { calls: [["grep", { pattern, glob: "*.ts", output_mode: "content", max_count: 200 }]] }
  }
  const text = results(messages, "grep").join("\n")
  const all = matches(text, /^(\/.*):$/gm)
  const sources = all.filter((path) => path.startsWith("/src/"))
  const files = sources.length > 0 ? sources : all
  if (files.length > 0 && results(messages, "read_file").length === 0) {
    return { calls: files.slice(0, 3).map((path) => ["read_file", { file_path: path, limit: 6 }] as const) }
  }
  const purposes = matches(results(messages, "read_file").join("\n"), /^ *\d+\t \* (.*)$/gm)
  return {
    text: [
      `## \`${pattern}\`: in ${files.length} files`,
      ...files.slice(0, 8).map((path) => `- ${path}`),
      ...purposes.slice(0, 2).map((purpose) => `> ${purpose}`)
    ].join("\n")
  }
}

/** A summary keeps what the agent said itself. */
const summarise = (messages: Messages): Said => ({
  text: matches(messages.map(Message.text).join("\n"), /^(Page \d+ .*|I'll make .*|The list .*)$/gm).join("\n")
})

const turn = ({ calls = [], reasoning, text = "" }: Said, request: ChatModel.ModelRequest): TestChatModel.Turn => {
  // Four characters a token: about what a real model would count.
  const tokens = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4)
  const words = text.match(/\s*\S+/g) ?? []
  return TestChatModel.calls(
    calls.map(([name, args]) => ({ name, arguments: args })),
    {
      text: words,
      ...(reasoning === undefined ? {} : { reasoning }),
      usage: {
        inputTokens: tokens([request.systemPrompt, request.tools, request.messages]),
        outputTokens: tokens([text, reasoning ?? "", calls])
      },
      delay: "200 millis",
      // Slow enough to be seen, and not longer than two seconds.
      chunkDelay: Math.min(15, 2000 / Math.max(1, words.length)),
      chunkSize: 60
    }
  )
}

export const script: Layer.Layer<ChatModel.ChatModel> = Layer.unwrap(
  Effect.sync(() => {
    let said = 0
    return TestChatModel.reactive(
      (request) => {
        if (request.purpose === "summary") return turn(summarise(request.messages), request)
        if (!request.tools.some((tool) => tool.name === "task")) return turn(researcher(request.messages), request)
        // A list that is short needs no pages.
        if (said === 2 && listOf(request.messages) === undefined) said = turns.indexOf(delegate)
        return turn(turns[said++]?.(request.messages) ?? { text: "There is nothing left to do." }, request)
      },
      { provider: "demo" }
    )
  })
)
