/**
 * The twelve skills that come with the program, each at the work that it is for: the agent reads the skill, follows its
 * steps with real commands in a folder of its own, and what came of them is checked.
 */
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { Console, Effect, FileSystem, Layer, Path } from "effect"
import { Agent, Message, Sandbox } from "effect-deepagents"
import * as CompositeBackend from "effect-deepagents/backends/CompositeBackend"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { TestChatModel } from "effect-deepagents/testing"
import { chooseModel } from "./shared/model.ts"
import { main } from "./shared/run.ts"

const worker = DeepAgent.make({
  name: "worker",
  prompt: "You work in a folder. When a skill fits, read it first, and do as it says.",
  execute: true,
  skills: ["/.skills"],
  generalPurpose: false
})

const node = `"${process.execPath}"`
const test = `${node} --test`

const files: { readonly [name: string]: string } = {
  "package.json": '{ "type": "module" }\n',
  "total.js": "export const total = (numbers) => numbers.reduce((before, one) => before + one, 0)\n",
  "mean.js":
    'import { total } from "./total.js"\nexport const mean = (numbers) => total(numbers) / Math.max(1, numbers.length)\n',
  "mean.test.js": [
    'import assert from "node:assert/strict"',
    'import { test } from "node:test"',
    'import { mean } from "./mean.js"',
    'test("of some", () => assert.equal(mean([1, 2, 3]), 2))',
    'test("of none it is 0", () => assert.equal(mean([]), 0))\n'
  ].join("\n"),
  "sales.csv": "day,loaves\nMon,20\nTue,\nWed,40\n",
  "bakery.sql": "CREATE TABLE sale (day TEXT, loaves INTEGER);\nINSERT INTO sale VALUES ('Mon', 20), ('Wed', 40);\n",
  "app.log": "09:00 started v1\n09:58 deployed v2\n10:01 ERROR mean is NaN\n10:02 ERROR mean is NaN\n",
  "rye.md": "Rye keeps for a week (baker's handbook, 2024).\n",
  "walnut.md": "Walnut keeps for three days (own test, 2025).\n",
  "notice.md": "It should perhaps be noted that rye, which we like very much, does keep for about a month.\n"
}

/** The history of the folder: a version, and a change behind it that breaks something. */
const history = [
  "git init -q && git config user.name a && git config user.email a@b.c",
  "git add . && git commit -qm 'Begin' && git tag v1",
  "sed 's/ . Math.max(1, numbers.length)/ \\/ numbers.length/' mean.js > new.js && mv new.js mean.js",
  "git commit -qam 'Simplify the mean'"
].join(" && ")

const call = (name: string, args: Record<string, string>) => TestChatModel.calls([{ name, arguments: args }])
const run = (command: string) => call("execute", { command })
const write = (file_path: string, ...lines: ReadonlyArray<string>) =>
  call("write_file", { file_path, content: `${lines.join("\n")}\n` })

interface Case {
  readonly task: string
  readonly steps: ReadonlyArray<TestChatModel.Turn>
  /** Something that only comes of the work, in what the tools said. */
  readonly proof: RegExp
}

const mend = "sed 's/ . numbers.length/ \\/ Math.max(1, numbers.length)/' mean.js > new.js && mv new.js mean.js"

const cases: { readonly [skill: string]: Case } = {
  "code-review": {
    task: "Review the last change.",
    steps: [
      run("git log -1 --format=%s && git diff HEAD~1 -- mean.js"),
      run(`${node} -e 'import("./mean.js").then(({ mean }) => console.log("proved:", mean([])))'`),
      "mean.js:2 divides by 0 for an empty list and gives NaN; bring Math.max(1, …) back."
    ],
    proof: /-.*Math\.max[^]*proved: NaN/
  },
  debugging: {
    task: "A test fails. Find out why, and mend it.",
    steps: [run(test), run("git log -p -1 -- mean.js"), run(mend), run(`${test} && echo all tests pass`), "Mended."],
    proof: /of none it is 0[^]*Simplify the mean[^]*all tests pass/
  },
  "test-writing": {
    task: "Write tests for total.js.",
    steps: [
      write(
        "/total.test.js",
        'import assert from "node:assert/strict"',
        'import { test } from "node:test"',
        'import { total } from "./total.js"',
        'test("of none it is 0, of many their sum", () => assert.deepEqual([total([]), total([1, 2])], [0, 3]))'
      ),
      run(`cp total.js kept && sed 's/before + one/before - one/' kept > total.js; ${test} total.test.js; echo red $?`),
      run(`mv kept total.js && ${test} total.test.js; echo green $?`),
      "total is tested; the test was seen to fail."
    ],
    proof: /red 1[^]*green 0/
  },
  refactoring: {
    task: "Call total what it is: sum.",
    steps: [
      run(`${mend} && ${test} > /dev/null; echo before $?; grep -rn total --include='*.js' .`),
      run("for f in total.js mean.js; do sed 's/total/sum/g' $f > new.js && mv new.js $f; done; mv total.js sum.js"),
      run(`${test} > /dev/null; echo after $?; grep -rc total mean.js sum.js`),
      "total is sum; its only user was mean.js; the tests passed before and after."
    ],
    proof: /before 0[^]*total\.js:1[^]*after 0\s+mean\.js:0\s+sum\.js:0/
  },
  "data-analysis": {
    task: "How many loaves were sold?",
    steps: [
      run("head -3 sales.csv && wc -l < sales.csv"),
      write(
        "/loaves.js",
        'import { readFileSync } from "node:fs"',
        'const rows = readFileSync("sales.csv", "utf8").trim().split("\\n").slice(1).map((row) => row.split(","))',
        'const known = rows.filter(([, loaves]) => loaves !== "")',
        "const sum = known.reduce((before, [, loaves]) => before + Number(loaves), 0)",
        "console.log(`${sum} loaves in ${known.length} of ${rows.length} rows`)"
      ),
      run(`${node} loaves.js && awk -F, '{ sum += $2 } END { print "checked " sum }' sales.csv`),
      "60 loaves, of 2 rows; Tuesday has no number."
    ],
    proof: /60 loaves in 2 of 3 rows\s+checked 60/
  },
  sql: {
    task: "How many loaves are in bakery.sql?",
    steps: [
      run("grep CREATE bakery.sql"),
      write(
        "/ask.js",
        'import { readFileSync } from "node:fs"',
        'import { DatabaseSync } from "node:sqlite"',
        'const db = new DatabaseSync(":memory:")',
        'db.exec(readFileSync("bakery.sql", "utf8"))',
        'const least = db.prepare("WITH known AS (SELECT loaves FROM sale WHERE loaves >= ?) SELECT sum(loaves) AS loaves, count(*) AS rows FROM known")',
        "console.log(JSON.stringify(least.get(1)))"
      ),
      run(`${node} --no-warnings ask.js`),
      "60, in 2 rows."
    ],
    proof: /CREATE TABLE sale[^]*\{"loaves":60,"rows":2\}/
  },
  "release-notes": {
    task: "Write the release notes.",
    steps: [
      run("git describe --tags --abbrev=0 && git log v1..HEAD --format='%h %s' && git diff v1 -- mean.js"),
      write(
        "/RELEASE.md",
        "# v2",
        "",
        "**Breaks:** the mean of no numbers is NaN; it was 0. Ask for the length first."
      ),
      run("head -3 RELEASE.md"),
      "They are in RELEASE.md; nothing was left out."
    ],
    proof: /v1\s[^]*Simplify the mean[^]*Breaks/
  },
  incident: {
    task: "The numbers are NaN since this morning.",
    steps: [
      run("grep -n -m1 ERROR app.log && grep -n deployed app.log"),
      run("git log -1 --format='last change: %s'"),
      write(
        "/incident.md",
        "10:01 mean is NaN, since v2 (09:58). Proposed: back to v1 (`git revert`). Decides: the person on call."
      ),
      "v2 broke it; I propose to go back to v1, and did not touch production."
    ],
    proof: /3:10:01 ERROR[^]*deployed v2[^]*Simplify the mean/
  },
  documentation: {
    task: "Document total.js.",
    steps: [
      call("read_file", { file_path: "/total.js" }),
      write(
        "/README.md",
        "# Add numbers",
        "",
        "```js",
        'import { total } from "./total.js"',
        "console.log(total([1, 2]))",
        "```"
      ),
      run(`sed -n '/^\`\`\`js/,/^\`\`\`$/p' README.md | grep -v '^\`' > shown.js && ${node} shown.js && echo it runs`),
      "README.md begins with a program that was run."
    ],
    proof: /3\s+it runs/
  },
  planning: {
    task: "Plan how rye gets a price list.",
    steps: [
      run("ls *.md && git log --oneline | wc -l"),
      write(
        "/plan.md",
        "Goal: `cat prices.csv` shows rye.",
        "1. prices.csv with rye. Proved by: cat.",
        "Not part of it: walnut."
      ),
      run("grep -c 'Proved by' plan.md && echo steps that can be checked"),
      "The plan is in plan.md."
    ],
    proof: /rye\.md[^]*1\s+steps that can be checked/
  },
  research: {
    task: "Which bread keeps longer?",
    steps: [
      TestChatModel.calls([
        { name: "read_file", arguments: { file_path: "/rye.md" } },
        { name: "read_file", arguments: { file_path: "/walnut.md" } }
      ]),
      call("grep", { pattern: "keep", output_mode: "files_with_matches" }),
      "Rye: a week (rye.md, 2024), walnut three days (walnut.md, 2025). notice.md says a month, and names no source."
    ],
    proof: /a week[^]*three days[^]*notice\.md/
  },
  writing: {
    task: "Mend notice.md.",
    steps: [
      run("cat notice.md && cat rye.md"),
      run("echo 'Rye keeps for a week.' > notice.md && grep -o 'for a week' notice.md rye.md"),
      "notice.md is one sentence now; a month was wrong, the handbook says a week."
    ],
    proof: /notice\.md:for a week\s+rye\.md:for a week/
  }
}

const packaged = fileURLToPath(new URL("../src/cli/skills", import.meta.url))

const script = TestChatModel.reactive(({ messages }) => {
  const asked = Message.text(messages[0] ?? Message.human(""))
  const [skill = "", found] = Object.entries(cases).find(([, { task }]) => asked.includes(task)) ?? []
  const turns = [call("use_skill", { name: skill }), ...(found?.steps ?? [])]
  return turns[messages.filter((message) => message.role === "ai").length] ?? "There is nothing left to do."
})

type Model = Effect.Success<ReturnType<typeof chooseModel>>

const perform = Effect.fnUntraced(function* (model: Model, skill: string, { proof, task }: Case) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped({ prefix: `skill-${skill}-` })
  for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(path.join(root, name), text)
  const places = CompositeBackend.layerSandbox({
    default: LocalShell.layer({ root }),
    routes: { "/.skills": FilesystemBackend.layer({ root: packaged }) }
  })
  const result = yield* Sandbox.Sandbox.use((sandbox) => sandbox.execute(history)).pipe(
    Effect.andThen(Agent.run(worker, task)),
    Effect.provide(Layer.merge(places, model.layer))
  )
  const heard = result.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map((block) => (block.type === "text" ? block.text : "")) : []
  )
  yield* Console.log(`${skill}: ${result.text}`)
  if (!model.isScripted) return
  // The skill was read, whole, before anything was done.
  const text = yield* fs.readFileString(path.join(packaged, skill, "SKILL.md"))
  assert.ok(heard[0]?.includes(text.slice(text.indexOf("\n# ")).trim()), skill)
  assert.match(heard.slice(1).join("\n"), proof)
}, Effect.scoped)

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const there = yield* fs.readDirectory(packaged)
  assert.deepEqual(Object.keys(cases).toSorted(), there.toSorted())
  const model = yield* chooseModel(script)
  yield* Effect.forEach(Object.entries(cases), ([skill, one]) => perform(model, skill, one))
})

main(program)
