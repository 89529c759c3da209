/**
 * What the scripted model says next, as a function of what it was told so far. It understands nothing, but every name
 * and number in it comes from the results of the tools that it called.
 */
import { type ChatModel, type Json, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { reportPath } from "./agents.ts"

type Request = ChatModel.ModelRequest

interface Said {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: Json.JsonObject]>
}

/** A result, and what was asked for. */
interface Found {
  readonly tool: string
  readonly args: Json.JsonObject
  readonly text: string
  readonly lines: ReadonlyArray<string>
}

const found = (request: Request, tool: string): ReadonlyArray<Found> => {
  const calls = new Map(
    request.messages
      .flatMap((message) => (message.role === "ai" ? message.toolCalls : []))
      .map((call) => [call.id, call])
  )
  return request.messages.flatMap((message) => {
    if (message.role !== "tool" || message.isError || message.toolName !== tool) return []
    const text = Message.text(message)
    return [{ tool, args: calls.get(message.toolCallId)?.arguments ?? {}, text, lines: text.split("\n") }]
  })
}

/** The files that were read, as `read_file` shows them: a number before each line, and a notice if that is not all. */
const filesRead = (request: Request) =>
  found(request, "read_file").map(({ args, lines, text }) => {
    const rows = lines.flatMap((line) => {
      const [, number, content = ""] = /^ *(\d+)\t(.*)$/.exec(line) ?? []
      return number === undefined ? [] : [{ number: Number(number), content }]
    })
    const all = /^\[lines? .* of (\d+)/m.exec(text)?.[1]
    return {
      path: typeof args["file_path"] === "string" ? args["file_path"] : "",
      count: all === undefined ? (rows.at(-1)?.number ?? 0) : Number(all),
      lines: rows.map((row) => row.content)
    }
  })

/** The paths of a list, and how many there are, as far as was looked. */
const listOf = (one: Found | undefined) => {
  const paths = (one?.lines ?? []).filter((line) => line.startsWith("/"))
  const all = /^\[\d+ of (\d+) are shown/m.exec(one?.text ?? "")?.[1]
  const count = all === undefined ? paths.length : Number(all)
  const isMore = /^\[there may be more/m.test(one?.text ?? "")
  return { paths, count, amount: `${isMore ? "at least " : ""}${count}` }
}

/** How many lines match in which file. */
const countsOf = (one: Found | undefined) =>
  (one?.lines ?? []).flatMap((line) => {
    const [, path, count] = /^(\/.*): (\d+)$/.exec(line) ?? []
    return path === undefined ? [] : [{ path, count: Number(count) }]
  })

const overview = (request: Request) => {
  const [all, sources] = found(request, "glob").map(listOf)
  const [tests, sizes] = found(request, "grep").map(countsOf)
  const code = sources !== undefined && sources.count > 0 ? sources.paths : (all?.paths ?? [])
  const cases = (tests ?? []).reduce((sum, file) => sum + file.count, 0)
  return {
    isEmpty: (all?.count ?? 0) === 0,
    hasSource: (sources?.count ?? 0) > 0,
    total: all?.amount ?? "0",
    inSource: sources?.amount ?? "0",
    entry: code.filter((path) => path.endsWith("/index.ts")).sort((left, right) => left.length - right.length)[0],
    largest: (sizes ?? [])
      .filter((file) => code.includes(file.path))
      .toSorted((left, right) => right.count - left.count)
      .map((file) => file.path),
    tests: `${cases} lines in ${tests?.length ?? 0} files contain it.effect(`
  }
}

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
    found(request, "researcher").at(-1)?.text ?? "The researcher gave no answer.",
    ""
  ].join("\n")
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
          ["glob", { pattern: "*.ts", max_count: 10_000 }],
          ["glob", { pattern: "src/**/*.ts", max_count: 10_000 }],
          ["grep", { pattern: "it.effect(", glob: "*.test.ts", output_mode: "count", max_count: 10_000 }],
          // How many lines of each file are not empty.
          ["grep", { pattern: ".", regex: true, glob: "*.ts", output_mode: "count", max_count: 10_000 }]
        ]
      }
    case 3: {
      const { entry, hasSource, isEmpty, largest, total } = overview(request)
      if (isEmpty) return { text: "There is no TypeScript in this folder, so there is nothing to report." }
      const toRead = [entry, ...largest.filter((path) => path !== entry).slice(0, 3)].filter(
        (path) => path !== undefined
      )
      return {
        text: `${total} files. I'll read the entry and the largest ones, and have the researcher look for errors meanwhile.`,
        calls: [
          plan(1),
          ...toRead.map((path) => ["read_file", { file_path: path }] as const),
          ["researcher", { task: question(hasSource ? "src/**/*.ts" : "**/*.ts") }]
        ]
      }
    }
    case 4:
      return { calls: [plan(2), ["write_file", { file_path: reportPath, content: report(request) }]] }
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

/** The lines of a search in mode `content`: a path, then its lines with their numbers. */
const declarationsOf = (one: Found | undefined) => {
  let path = ""
  return (one?.lines ?? []).flatMap((line) => {
    path = /^(\/.*):$/.exec(line)?.[1] ?? path
    const [, at, name] = /^ {2}(\d+): export class (\w+)/.exec(line) ?? []
    return name === undefined ? [] : [{ path, at, name }]
  })
}

const researcher = (request: Request, turn: number): Said => {
  const task = request.messages.find((message) => message.role === "human")
  const glob = /\S*\*\S*\.ts/.exec(task === undefined ? "" : Message.text(task))?.[0] ?? "**/*.ts"
  const errors = declarationsOf(found(request, "grep")[0])
  const paths = [...new Set(errors.map((error) => error.path))].slice(0, 8)
  if (turn === 1) {
    return {
      text: "I'll look for the declarations.",
      calls: [["grep", { pattern: "extends Schema.TaggedError", glob, output_mode: "content" }]]
    }
  }
  if (turn === 2 && paths.length > 0) return { calls: paths.map((path) => ["read_file", { file_path: path }]) }
  const read = new Map(filesRead(request).map((file) => [file.path, file.lines]))
  return {
    text: [
      `${errors.length} errors are declared in ${glob}${errors.length > 0 ? ":" : "."}`,
      ...errors.map(({ at, name, path }) => {
        const purpose = read.get(path)?.flatMap((line) => /^ \* (.+)/.exec(line)?.[1] ?? [])[0]
        return `- ${name} (${path}:${at})${purpose === undefined ? "" : ` ${purpose}`}`
      })
    ].join("\n")
  }
}

/** The next turn of whichever agent asks: only the reporter can write. */
export const respond = (request: Request): TestChatModel.Turn => {
  const turn = request.messages.filter((message) => message.role === "ai").length + 1
  const isReporter = request.tools.some((tool) => tool.name === "write_file")
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
