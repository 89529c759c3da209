/**
 * The scripted model of `--demo`. It understands nothing: its names and numbers come from tool results. Agents, tools,
 * files and approvals are real.
 */
import type * as Layer from "effect/Layer"
import type { ChatModel, ModelRequest } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import * as TestChatModel from "../../../testing/TestChatModel.ts"

/** The folder for the demo's output. It is deleted afterwards. */
export const outputRoute = "/output"
const report = `${outputRoute}/report.md`

interface Said {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: JsonObject]>
}

type Messages = ReadonlyArray<Message.Message>

const steps = ["Look around", "Have two questions answered", "Write a report"]

const plan = (done: number): readonly [string, JsonObject] => [
  "write_todos",
  {
    todos: steps.map((content, index) => ({
      content,
      status: index < done ? "completed" : index === done ? "in_progress" : "pending"
    }))
  }
]

/** The results of a tool since the last message of the person, oldest first. */
const results = (messages: Messages, tool: string): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "tool" && message.toolName === tool && !message.isError ? [Message.text(message)] : []
  )

const lines = (text: string | undefined): ReadonlyArray<string> =>
  (text ?? "").split("\n").filter((line) => line.startsWith("/"))

const questions = [
  ["Which files are Markdown?", "**/*.md"],
  ["Which files are TypeScript?", "**/*.ts"]
] as const

const table = (messages: Messages): string => {
  const counted = results(messages, "task").flatMap((answer) => {
    const [, count = "0", glob = ""] = /^(\d+) files fit (\S+)/m.exec(answer) ?? []
    return glob === "" ? [] : [`| \`${glob}\` | ${count} |`]
  })
  return ["| files | how many |", "| --- | ---: |", ...counted].join("\n")
}

const turns: ReadonlyArray<(messages: Messages) => Said> = [
  () => ({
    reasoning: "I know nothing of this folder, so I look before I say anything.",
    text: "I look around first.",
    calls: [plan(0), ["ls", { path: "/" }]]
  }),
  (messages) => ({
    text: `There are ${lines(results(messages, "ls").at(-1)).length} entries at the top. Two sub-agents count the rest, at the same time.`,
    calls: [
      plan(1),
      ...questions.map(
        ([question, pattern]) =>
          ["task", { subagent_type: "general-purpose", description: `${question} Look for \`${pattern}\`.` }] as const
      )
    ]
  }),
  (messages) => ({
    text: "Now the report, for which I ask you first.",
    calls: [plan(2), ["write_file", { file_path: report, content: `# What is in this folder\n\n${table(messages)}\n` }]]
  }),
  (messages) => {
    const isWritten = results(messages, "write_file").length > 0
    return {
      text: [
        isWritten ? `The report is at \`${report}\`.` : "The report may not be written, so here it is.",
        "",
        table(messages),
        "",
        "A program that does the same:",
        "",
        "```ts",
        'import { Agent } from "effect-deepagents"',
        'import { DeepAgent } from "effect-deepagents/deep"',
        "",
        'const agent = DeepAgent.make({ name: "counter", prompt: "You count files." })',
        'const answer = Agent.run(agent, "What is in this folder?")',
        "```",
        "",
        "This was a **script**: with a key (`deepagents models login`), a model answers."
      ].join("\n")
    }
  }
]

const child = (messages: Messages): Said => {
  const [, pattern = "**/*"] = /`(.*)`/.exec(Message.text(messages[0] ?? Message.human(""))) ?? []
  const found = results(messages, "glob").at(-1)
  if (found === undefined) return { calls: [["glob", { pattern }]] }
  const files = lines(found)
  return { text: [`${files.length} files fit ${pattern}`, ...files.slice(0, 5).map((file) => `- ${file}`)].join("\n") }
}

const turn = ({ calls = [], reasoning, text = "" }: Said, request: ModelRequest): TestChatModel.Turn => {
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

const answer = (request: ModelRequest): Said => {
  const { messages } = request
  // A request without tools has a text to be made short.
  if (request.purpose === "summary" || request.tools.length === 0) return { text: "The folder was looked at." }
  if (!request.tools.some(({ name }) => name === "task")) return child(messages)
  const asked = messages.findLastIndex(({ role, source }) => role === "human" && source === undefined)
  const isFirst = !messages.slice(0, asked).some(({ role }) => role === "human")
  const since = messages.slice(asked)
  const done = since.filter(({ role }) => role === "ai").length
  if (!isFirst) {
    const said = Message.text(messages[asked] ?? Message.human("")).slice(0, 200)
    return { text: `You said: “${said}”. I am a script, and that was all: with a key, a model would answer.` }
  }
  return turns[done]?.(since) ?? { text: "That was all." }
}

export const model: Layer.Layer<ChatModel> = TestChatModel.reactive((request) => turn(answer(request), request), {
  provider: "demo",
  modelId: "script",
  contextWindowTokens: 200_000
})
