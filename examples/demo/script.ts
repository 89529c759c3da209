/**
 * What the scripted model says next, as a function of what it was told so far. It understands nothing, but every name
 * and number in it comes from the results of the tools that it called.
 */
import { type ChatModel, type Json, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

type Request = ChatModel.ModelRequest

interface Said {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: Json.JsonObject]>
}

/** A result as our tools write it: the first line says what it is, the others are what was found. */
interface Found {
  readonly tool: string
  readonly headline: string
  readonly lines: ReadonlyArray<string>
}

const found = (request: Request): ReadonlyArray<Found> =>
  request.messages.flatMap((message) => {
    if (message.role !== "tool" || message.isError) return []
    const [headline = "", ...lines] = Message.text(message).split("\n")
    return [{ tool: message.toolName, headline, lines }]
  })

const filesRead = (request: Request) =>
  found(request).flatMap(({ headline, lines }) => {
    const [, path, count] = /^(.+): lines \d+ to \d+ of (\d+)$/.exec(headline) ?? []
    return path === undefined ? [] : [{ path, count: Number(count), lines }]
  })

const plan = (done: number): readonly [string, Json.JsonObject] => [
  "write_todos",
  {
    todos: ["See which files there are", "Read the entry and the largest files", "Write the report"].map(
      (content, index) => ({
        content,
        status: index < done ? "completed" : index === done ? "in_progress" : "pending"
      })
    )
  }
]

const question = (glob: string) => `Which errors are declared in ${glob}, and what is each one for?`

const report = (request: Request): string => {
  const { entry, inSource, tests, total } = overview(request)
  const modules = filesRead(request)
    .filter((file) => file.path === entry)
    .flatMap((file) => file.lines.flatMap((line) => /^export \* as (\w+)/.exec(line)?.[1] ?? []))
  const research = found(request).findLast((one) => one.tool === "researcher")
  return [
    "# What is in this folder",
    "",
    `- ${total} TypeScript files, ${inSource} of them under src/`,
    `- ${entry ?? "no index.ts"} exports ${modules.length} modules${modules.length > 0 ? `: ${modules.join(", ")}` : ""}`,
    `- tests: ${tests}`,
    "",
    "## Files that were read",
    "",
    "| file | lines |",
    "| --- | ---: |",
    ...filesRead(request).map((file) => `| ${file.path} | ${file.count} |`),
    "",
    "## Errors",
    "",
    ...(research === undefined ? ["The researcher gave no answer."] : [research.headline, ...research.lines]),
    ""
  ].join("\n")
}

const overview = (request: Request) => {
  const results = found(request)
  const [all, sources] = results
    .filter((one) => one.tool === "list_files")
    .map((one) => ({
      // The number of the headline: a long list is cut.
      count: Number.parseInt(one.headline, 10),
      files: one.lines.flatMap((line) => {
        const [, path, bytes] = /^(.+) {2}(\d+) bytes$/.exec(line) ?? []
        return path === undefined ? [] : [{ path, bytes: Number(bytes) }]
      })
    }))
  const code = sources !== undefined && sources.count > 0 ? sources.files : (all?.files ?? [])
  return {
    total: all?.count ?? 0,
    inSource: sources?.count ?? 0,
    entry: code
      .map((file) => file.path)
      .filter((path) => /(^|\/)index\.ts$/.test(path))
      .sort((left, right) => left.length - right.length)[0],
    largest: code.toSorted((left, right) => right.bytes - left.bytes).map((file) => file.path),
    tests: results.find((one) => one.tool === "search_files")?.headline ?? "not counted"
  }
}

const reporter = (request: Request, turn: number): Said => {
  switch (turn) {
    case 1:
      return {
        reasoning: "Numbers must come from the files themselves, so I list and search before I read anything.",
        text: "I'll make a plan first.",
        calls: [plan(0)]
      }
    case 2:
      return {
        calls: [
          ["list_files", { pattern: "**/*.ts" }],
          ["list_files", { pattern: "src/**/*.ts" }],
          ["search_files", { text: "it.effect(", pattern: "**/*.test.ts" }]
        ]
      }
    case 3: {
      const { entry, inSource, largest, total } = overview(request)
      if (total === 0) return { text: "There is no TypeScript in this folder, so there is nothing to report." }
      const toRead = [entry, ...largest.filter((path) => path !== entry).slice(0, 3)].filter(
        (path) => path !== undefined
      )
      return {
        text: `${total} files. I'll read the entry and the largest ones, and have the researcher look for errors meanwhile.`,
        calls: [
          plan(1),
          ...toRead.map((path) => ["read_file", { path }] as const),
          ["researcher", { task: question(inSource > 0 ? "src/**/*.ts" : "**/*.ts") }]
        ]
      }
    }
    case 4:
      return { calls: [plan(2), ["write_report", { markdown: report(request) }]] }
    case 5:
      return { calls: [plan(3)] }
    default: {
      const { inSource, total } = overview(request)
      const read = filesRead(request)
      const lines = read.reduce((sum, file) => sum + file.count, 0)
      return {
        text: `The report is written: ${total} TypeScript files, ${inSource} of them under src/; the ${read.length} that I read have ${lines} lines.`
      }
    }
  }
}

const researcher = (request: Request, turn: number): Said => {
  const task = request.messages.find((message) => message.role === "human")
  const glob = /\S*\*\S*\.ts/.exec(task === undefined ? "" : Message.text(task))?.[0] ?? "**/*.ts"
  const search = found(request).find((one) => one.tool === "search_files")
  const errors = (search?.lines ?? []).flatMap((line) => {
    const [, path, at, name] = /^(.+):(\d+): export class (\w+)/.exec(line) ?? []
    return path === undefined ? [] : [{ path, at, name }]
  })
  const paths = [...new Set(errors.map((error) => error.path))].slice(0, 8)
  if (turn === 1) {
    return {
      text: "I'll look for the declarations.",
      calls: [["search_files", { text: "extends Schema.TaggedError", pattern: glob }]]
    }
  }
  if (turn === 2 && paths.length > 0) return { calls: paths.map((path) => ["read_file", { path }]) }
  const read = new Map(filesRead(request).map((file) => [file.path, file.lines]))
  return {
    text: [
      `${errors.length} errors are declared in ${glob}${errors.length > 0 ? ":" : "."}`,
      ...errors.map(({ at, name, path }) => {
        const purpose = read.get(path ?? "")?.flatMap((line) => /^ \* (.+)/.exec(line)?.[1] ?? [])[0]
        return `- ${name} (${path}:${at})${purpose === undefined ? "" : ` ${purpose}`}`
      })
    ].join("\n")
  }
}

/** The next turn of whichever agent asks: only the reporter can write. */
export const respond = (request: Request): TestChatModel.Turn => {
  const turn = request.messages.filter((message) => message.role === "ai").length + 1
  const isReporter = request.tools.some((tool) => tool.name === "write_report")
  const { calls = [], reasoning, text = "" } = isReporter ? reporter(request, turn) : researcher(request, turn)
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
