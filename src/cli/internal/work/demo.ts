/**
 * The scripted model of `--demo`. It understands nothing: its names and numbers come from tool results. Agents, tools,
 * files and approvals are real.
 */
import type * as Layer from "effect/Layer"
import type { ChatModel, ModelRequest } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import * as TestChatModel from "../../../testing/TestChatModel.ts"

/** The file of the report, in the folder that the demo looks at. A person approves it, as any edit. */
const report = "deepagents-demo.md"

interface DemoTurn {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: JsonObject]>
}

type Messages = ReadonlyArray<Message.Message>

const steps = ["Look around", "Count the files", "Write a report"]

const plan = (done: number): readonly [string, JsonObject] => [
  "write_todos",
  {
    todos: steps.map((content, index) => ({
      content,
      status: index < done ? "completed" : index === done ? "in_progress" : "pending"
    }))
  }
]

/** The last result of a tool, a failure included. */
const resultOf = (messages: Messages, tool: string) =>
  messages.findLast((message) => message.role === "tool" && message.toolName === tool)

const isSuccess = (message: Message.Message | undefined): message is Message.ToolMessage =>
  message?.role === "tool" && !message.isError

/** The rows of a listing, and its total as the tool reports it. */
const readListing = (text: string) => {
  const rows = text.split("\n").filter((line) => line.startsWith("/"))
  const [, total = rows.length] = /^\[\d+ of (\d+) are shown;/m.exec(text) ?? []
  return { rows, total: Number(total), isComplete: !/^\[there may be more:/m.test(text) }
}

const questions = [
  ["All files", "**/*"],
  ["Markdown", "**/*.md"],
  ["TypeScript", "**/*.ts"]
] as const

const describeCount = (count: number, isComplete: boolean): string => `${isComplete ? "" : "at least "}${count}`

/** The answers of the sub-agents as a table. */
const table = (messages: Messages): string => {
  const rows = messages.flatMap((message) => {
    if (!isSuccess(message) || message.toolName !== "task") return []
    const [, glob, count] = /^`(.+)`: (.+)$/m.exec(Message.text(message)) ?? []
    const [name] = questions.find(([, pattern]) => pattern === glob) ?? []
    return name === undefined ? [] : [`| ${name} | \`${glob}\` | ${count} |`]
  })
  return ["| files | pattern | count |", "| --- | --- | ---: |", ...rows].join("\n")
}

/** A program that asks a model the same. `test/cli/demo.test.ts` runs it. */
const program = `import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { DeepAgent } from "effect-deepagents/deep"
import { ChatModels } from "effect-deepagents/models"
import { Printer } from "effect-deepagents/view"
import * as Effect from "effect/Effect"

const files = FilesystemBackend.layerReadOnly({ root: "." })
const model = ChatModels.resolve(process.env["MODEL"] ?? "anthropic:claude-sonnet-5-5")
const reader = DeepAgent.make({ name: "reader", prompt: "You answer from the files.", files: ["ls", "read_file", "glob"] })

const answer = Printer.run(reader, "What is in this folder?").pipe(Effect.provide([files, model]), Printer.orExit)
await Effect.runPromise(answer)`

const turns: ReadonlyArray<(messages: Messages) => DemoTurn> = [
  () => ({
    reasoning: "I know nothing of this folder, so I look before I say anything.",
    text: "I look around first.",
    calls: [plan(0), ["ls", {}]]
  }),
  (messages) => {
    const listed = resultOf(messages, "ls")
    const { isComplete, rows, total } = readListing(listed === undefined ? "" : Message.text(listed))
    const count = describeCount(total, isComplete)
    const countText = isSuccess(listed)
      ? `Entries at the top of this folder: ${count}.`
      : "This folder can't be listed."
    return {
      text: `${countText} Three sub-agents count its files, at the same time. They leave out what \`.gitignore\` names.`,
      calls: [
        plan(1),
        // An older report has to be read before it is replaced.
        ...(rows.some((row) => row.includes(`/${report} `)) ? [["read_file", { file_path: report }] as const] : []),
        ...questions.map(
          ([name, pattern]) =>
            ["task", { subagent_type: "general-purpose", description: `${name}: count \`${pattern}\`.` }] as const
        )
      ]
    }
  },
  (messages) => ({
    text: "Now the report. It is a file in your folder, so I ask you first.",
    calls: [
      plan(2),
      [
        "write_file",
        {
          file_path: report,
          content: `# What is in this folder\n\nCounted before this report was written, without what \`.gitignore\` names:\n\n${table(messages)}\n`
        }
      ]
    ]
  }),
  () => ({ calls: [plan(3)] }),
  (messages) => ({
    text: [
      isSuccess(resultOf(messages, "write_file"))
        ? `The report is in \`./${report}\`.`
        : `The report was not written to \`./${report}\`, since nobody allowed it. Here it is:`,
      "",
      table(messages),
      "",
      "This was a **script**: a model answers once you add a key (`deepagents models login`).",
      "",
      "The same question as a program. Save it as `ask.mts` in this folder:",
      "",
      "```ts",
      program,
      "```",
      "",
      "```sh",
      "npm install effect effect-deepagents @anthropic-ai/sdk",
      "ANTHROPIC_API_KEY=sk-ant-… node ask.mts",
      "```"
    ].join("\n")
  })
]

const child = (messages: Messages): DemoTurn => {
  const [, pattern = "**/*"] = /`(.*)`/.exec(Message.text(messages[0] ?? Message.human(""))) ?? []
  const result = resultOf(messages, "glob")
  if (result === undefined) return { calls: [["glob", { pattern, max_count: 10_000 }]] }
  if (!isSuccess(result)) return { text: `\`${pattern}\`: not counted, as the search failed` }
  const { isComplete, rows, total } = readListing(Message.text(result))
  return {
    text: [`\`${pattern}\`: ${describeCount(total, isComplete)}`, ...rows.slice(0, 5).map((row) => `- ${row}`)].join(
      "\n"
    )
  }
}

const turn = ({ calls = [], reasoning, text = "" }: DemoTurn, request: ModelRequest): TestChatModel.Turn => {
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
      delay: "150 millis",
      // Slow enough to be seen, and not longer than two seconds.
      chunkDelay: Math.min(15, 2000 / Math.max(1, words.length))
    }
  )
}

const answer = (request: ModelRequest): DemoTurn => {
  const { messages } = request
  // A request without tools has a text to be made short.
  if (request.purpose === "summary" || request.tools.length === 0)
    return { text: "The files of the folder were counted." }
  if (!request.tools.some(({ name }) => name === "task")) return child(messages)
  const inputIndex = messages.findLastIndex(({ role, source }) => role === "human" && source === undefined)
  const isFirst = !messages.slice(0, inputIndex).some(({ role }) => role === "human")
  const since = messages.slice(inputIndex)
  const step = since.filter(({ role }) => role === "ai").length
  if (!isFirst) {
    const inputText = Message.text(messages[inputIndex] ?? Message.human("")).slice(0, 200)
    return { text: `You said: “${inputText}”. I am a script, and that was all: with a key, a model would answer.` }
  }
  return turns[step]?.(since) ?? { text: "That was all." }
}

/** The scripted model. */
export const model: Layer.Layer<ChatModel> = TestChatModel.reactive((request) => turn(answer(request), request), {
  provider: "demo",
  modelId: "script",
  contextWindowTokens: 200_000
})
