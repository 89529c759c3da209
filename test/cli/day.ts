/** The world of a day: a repository behind a server of git, a program with everything in it, and a model that plays a competent one. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { answer, type Recorded, type Reply, stream, toSse } from "../models/servers/anthropic.ts"

const everything = join(process.cwd(), "node_modules/@modelcontextprotocol/server-everything/dist/index.js")

/** A red picture of one pixel. */
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

const write = (folder: string, files: { readonly [path: string]: string | Uint8Array }): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

/** A small project with a wrong function, as its team keeps it. */
const project: { readonly [path: string]: string | Uint8Array } = {
  "AGENTS.md": "# Shop\n\nTests: `npm test`. Sums are in `src/sum.js`.\n",
  "package.json": JSON.stringify({
    name: "shop",
    private: true,
    type: "module",
    scripts: { test: "node --test src/sum.test.js", dev: "node server.js" }
  }),
  "src/sum.js": "export const sum = (items) => {\n  return items.reduce((all, one) => all + one.price)\n}\n",
  "src/sum.test.js":
    'import assert from "node:assert/strict"\nimport test from "node:test"\nimport { sum } from "./sum.js"\n\ntest("sum", () => {\n  const total = sum([{ price: 1 }, { price: 2 }])\n  if (typeof total !== "number") throw new TypeError("no number: " + total)\n  assert.equal(total, 3)\n})\n',
  "server.js":
    'import { createServer } from "node:http"\nconst server = createServer((_request, response) => response.end("shop"))\nserver.listen(0, "127.0.0.1", () => console.log("listening on " + server.address().port))\n',
  "logo.png": Buffer.from(png, "base64"),
  ".mcp.json": JSON.stringify({ mcpServers: { everything: { command: process.execPath, args: [everything] } } }),
  ".claude/settings.json": JSON.stringify({
    permissions: {
      allow: [
        "Bash(npm test:*)",
        "Bash(npm run dev)",
        "Bash(git add:*)",
        "Bash(git commit:*)",
        "mcp__everything__echo",
        "code_in_worktree",
        "merge_branches"
      ]
    },
    hooks: {
      PreToolUse: [
        {
          matcher: "Bash",
          hooks: [
            {
              type: "command",
              command: "grep -q 'rm -rf' && { echo 'The team deletes by hand.' >&2; exit 2; }; exit 0"
            }
          ]
        }
      ]
    }
  }),
  // The layout of `npx skills`.
  ".agents/skills/release/SKILL.md":
    "---\nname: release\ndescription: How this shop is released.\n---\n\nThe word of the day is turnip.\n"
}

/** A language server that knows one mistake: a price in words. */
const languageServer = `#!${process.execPath}
let all = Buffer.alloc(0)
let text = ""
const send = (message) => {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message })
  process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body)
}
process.stdin.on("end", () => process.exit(0)).on("data", (chunk) => {
  all = Buffer.concat([all, chunk])
  for (;;) {
    const end = all.indexOf("\\r\\n\\r\\n")
    if (end < 0) return
    const size = Number(/length: (\\d+)/i.exec(all.subarray(0, end))[1])
    if (all.length < end + 4 + size) return
    const { id, method, params } = JSON.parse(all.subarray(end + 4, end + 4 + size))
    all = all.subarray(end + 4 + size)
    if (method === "initialize") send({ id, result: { capabilities: { textDocumentSync: 1, diagnosticProvider: {} } } })
    else if (method === "textDocument/didOpen") text = params.textDocument.text
    else if (method === "textDocument/didChange") text = params.contentChanges.at(-1).text
    else if (method === "textDocument/diagnostic") {
      const start = { line: 0, character: 13 }
      const item = { range: { start, end: start }, severity: 1, code: 2322, message: "A text is no number." }
      send({ id, result: { kind: "full", items: text.includes("'free'") ? [item] : [] } })
    } else if (method === "shutdown") send({ id, result: null })
  }
})
`

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** The folders of the day, and the server of git, until the scope ends. */
export const makeWorld = Effect.acquireRelease(
  Effect.promise(async () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "deepagents-day-")))
    const at = (path: string): string => join(root, path)
    const git = (cwd: string, ...args: ReadonlyArray<string>): string =>
      execFileSync("git", args, { cwd, encoding: "utf8", env: { PATH: process.env["PATH"], HOME: at("home") } })
    write(at("home"), {
      ".gitconfig":
        "[user]\n name = Ada\n email = ada@shop.example\n[init]\n defaultBranch = main\n[pull]\n rebase = true\n",
      // A transport like SSH: git starts a program, which starts git on the other side.
      "ssh.sh": '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'
    })
    write(at("home/bin"), { tsc: languageServer })
    for (const file of ["home/ssh.sh", "home/bin/tsc"]) chmodSync(at(file), 0o755)
    mkdirSync(at("work"), { recursive: true })
    write(at("team"), project)
    git(at("team"), "init", "-q")
    git(at("team"), "add", ".")
    git(at("team"), "commit", "-q", "-m", "The shop")
    git(root, "clone", "-q", "--bare", at("team"), at("remote/shop.git"))
    const port = await freePort()
    const daemon: ChildProcess = spawn(
      "git",
      [
        "daemon",
        "--listen=127.0.0.1",
        `--port=${port}`,
        "--export-all",
        "--reuseaddr",
        `--base-path=${at("remote")}`,
        at("remote")
      ],
      { stdio: "ignore", detached: true }
    )
    /** A colleague adds a commit. */
    const colleague = (): void => {
      write(at("team"), { "README.md": "# The shop\n" })
      git(at("team"), "add", ".")
      git(at("team"), "commit", "-q", "-m", "Say what it is")
      git(at("team"), "push", "-q", at("remote/shop.git"), "HEAD:main")
    }
    return {
      root,
      at,
      git,
      daemon,
      colleague,
      url: `git://127.0.0.1:${port}/shop.git`,
      ssh: `ssh://dev@127.0.0.1${at("remote/shop.git")}`
    }
  }),
  ({ daemon, root }) =>
    Effect.sync(() => {
      // The daemon has a child of its own.
      if (daemon.pid !== undefined) process.kill(-daemon.pid, "SIGKILL")
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    })
)

type World = Effect.Success<typeof makeWorld>

/** The model's view of a turn: results of its calls since the person's message, and the whole request. */
interface Seen {
  readonly results: ReadonlyArray<string>
  readonly body: string
}

type Input = { readonly [name: string]: unknown }
type Call = readonly [name: string, input: Input]
type Step = (seen: Seen) => Call | ReadonlyArray<Call> | string

/** The first match of a pattern. A missing one ends the turn in words that no test waits for. */
const pick = (text: string | undefined, pattern: RegExp): string => pattern.exec(text ?? "")?.[1] ?? `<no ${pattern}>`

const run =
  (command: string): Step =>
  () => ["execute", { command }]

/** Two parts at once, each by a coder in a worktree. */
const both: Step = () =>
  ["one", "two"].map((part) => ["code_in_worktree", { branch: part, task: `Write ${part}.txt` }] as const)

/** A coder's work in its worktree. */
const code = (raw: string): string | Call =>
  raw.includes('"tool_result"')
    ? "Written."
    : ["write_file", { file_path: pick(raw, /Write (\w+\.txt)/), content: "part\n" }]

/** The model's calls for each word of the person, one by one. */
const scenes = ({ at, ssh, url }: World): { readonly [word: string]: ReadonlyArray<Step> } => ({
  clone: [run(`git clone ${url} shop`), ({ results }) => `Cloned: ${results[0]?.includes("exit code 0")}`],
  read: [
    () => ["glob", { pattern: "src/**/*.js" }],
    () => ["read_file", { file_path: "src/sum.js" }],
    run("git log --oneline && ls -la src"),
    ({ results }) => `It adds prices, and has ${results[2]?.includes("The shop") === true ? "one commit" : "none"}.`
  ],
  dev: [
    () => ["execute", { command: "npm run dev", background: true }],
    ({ results }) => ["read_output", { id: pick(results[0], /\[process (\w+):/), until: "listening on" }],
    ({ results }) => `The server is at port ${pick(results[1], /listening on (\d+)/)}.`
  ],
  fix: [
    run("npm test"),
    // The file tools take the path of a stack trace.
    ({ results }) => ["read_file", { file_path: pick(results[0], /file:\/\/(\/\S+?\/src\/sum\.test\.js):\d+/) }],
    ({ results }) => ["read_file", { file_path: pick(results[0], /file:\/\/(\/\S+?)\.test\.js:\d+/) + ".js" }],
    () => ["edit_file", { file_path: "src/sum.js", old_string: "all + one.price)", new_string: "all + one.price, 0)" }],
    run("npm test"),
    run("git add -A && git commit -m 'Begin sums at 0'"),
    ({ results }) => `The test ${/pass 1/.test(results[4] ?? "") ? "passes" : "fails"}.`
  ],
  types: [
    () => ["write_file", { file_path: "src/price.ts", content: "export const price: number = 'free'\n" }],
    ({ results }) => [
      "edit_file",
      {
        file_path: "src/price.ts",
        old_string: results[0]?.includes("A text is no number.") ? "'free'" : "",
        new_string: "0"
      }
    ],
    run("git add -A && git commit -m 'Say a price'"),
    ({ results }) => `The types are ${results[1]?.includes("A text is no number.") === false ? "right" : "wrong"}.`
  ],
  parallel: [both, both, () => ["merge_branches", { branches: ["one", "two"] }], () => "Both parts are merged."],
  skill: [
    ({ body }) => ["read_file", { file_path: pick(body, /(\/[^\s"\\`<>]+\/release\/SKILL\.md)/) }],
    ({ results }) => `The word is ${pick(results[0], /word of the day is (\w+)/)}.`
  ],
  server: [
    () => ["everything__echo", { message: "from the day" }],
    ({ results }) => `The server said: ${pick(results[0], /(Echo: .*day)/)}.`
  ],
  look: [({ body }) => `It is ${body.includes(png) ? "red" : "not there"}.`],
  clean: [run("rm -rf src"), ({ results }) => `Not done: ${pick(results[0], /(The team deletes by hand)/)}.`],
  rebase: [
    run(`git pull --rebase ${ssh} main`),
    run("git log --format=%s"),
    ({ results }) => `Rebased: ${/Begin sums at 0\s+(?:\S+\s+)?Say what it is/.test(results[1] ?? "")}.`
  ],
  note: [
    ({ body }) => [
      "write_file",
      { file_path: join(at("work/shop"), "NOTES.md"), content: `Seen ${body.length > 0}\n` }
    ],
    () => "Noted."
  ]
})

const isCall = (done: Call | ReadonlyArray<Call>): done is Call => typeof done[0] === "string"

/** Words that are said before the connection stands still. */
const unended = (text: string): Reply => stream(toSse(answer([{ text }]).slice(0, -3)), { end: "hold" })

const textsOf = (content: unknown): ReadonlyArray<string> =>
  Array.isArray(content)
    ? content.flatMap((block) => (block.type === "text" ? [String(block.text)] : []))
    : [String(content)]

const resultsOf = (content: unknown): ReadonlyArray<string> =>
  Array.isArray(content)
    ? content.flatMap((block) => (block.type === "tool_result" ? [textsOf(block.content).join("\n")] : []))
    : []

/** The model of the day. Its answer to `slow`, and the first one to `note`, never ends. */
export const makeModel = (world: World): ((request: Recorded) => Reply) => {
  const all = scenes(world)
  const words = new RegExp(`^(${[...Object.keys(all), "slow"].join("|")})\\b`)
  let calls = 0
  let hasNoted = false
  return ({ body, raw }) => {
    const messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }> = body.messages
    const isSaid = (content: unknown): boolean => textsOf(content).some((text) => words.test(text))
    const from = messages.findLastIndex(({ content, role }) => role === "user" && isSaid(content))
    const said = textsOf(messages[from]?.content).findLast((text) => words.test(text)) ?? ""
    const word = words.exec(said)?.[1] ?? ""
    if (word === "slow") return unended("This takes a while, as you see")
    const results = messages.slice(from).flatMap(({ content }) => resultsOf(content))
    if (word === "note" && results.length > 0 && !hasNoted) {
      hasNoted = true
      return unended("It is written, and now")
    }
    const step = all[word]?.[results.length]
    const done = raw.includes("in a copy of the project that is yours alone")
      ? code(raw)
      : step === undefined
        ? `Nothing is planned for ${JSON.stringify(said)}.`
        : step({ results, body: raw })
    if (typeof done === "string") return stream(answer([{ text: done }]))
    const made = isCall(done) ? [done] : done
    return stream(answer(made.map(([call, input]) => ({ call, id: `toolu_day_${calls++}`, input }))))
  }
}
