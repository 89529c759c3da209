/** Rules for commands: free commands, commands that a rule or an approval for good covers, and bash's own reading. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { CommandRule } from "effect-deepagents/backends"
import * as fc from "fast-check"
import { parse } from "../../src/backends/internal/rule/strict.ts"
import { isFull } from "../scale.ts"
import { spentBy } from "../spent.ts"
import { commandsByBash, digestOf, look, makeProject, runLines } from "./commands/shells.ts"

const table = <S extends Schema.ConstraintDecoder<unknown>>(name: string, schema: S): S["Type"] =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(
    readFileSync(join(import.meta.dirname, "commands", `${name}.json`), "utf8")
  )

const Lines = Schema.Array(Schema.String)
const reads = table("reads", Schema.Struct({ free: Lines, asked: Lines }))
const honest = table("honest", Schema.Array(Schema.Tuple([Schema.String, Schema.String])))
const pairs = table("pairs", Schema.Record(Schema.String, Lines))

/** A folder with the tools of the tables. */
const where: CommandRule.Where = {
  cwd: "/home/u/p",
  folders: ["/home/u/p"],
  look: (path) => (/\/(?:src|\.bin\/(?:vitest|eslint|tsc|prettier|jest)|\.venv\/bin\/pytest)$/.test(path) ? [path] : [])
}

describe("commands that only read", () => {
  it("is free, of 90 lines that people and models write", () => {
    assert.isAtLeast(reads.free.length, 90)
    assert.deepEqual(
      reads.free.filter((line) => !CommandRule.isReading(line, where)),
      []
    )
  })

  it("exclude near ones: 90 lines that write, run, lead out or show a secret", () => {
    assert.isAtLeast(reads.asked.length, 90)
    assert.deepEqual(
      reads.asked.filter((line) => CommandRule.isReading(line, where)),
      []
    )
  })

  it("follows links, which the text of a path does not show", () => {
    const { folder, remove } = makeProject()
    const place: CommandRule.Where = { cwd: folder, folders: [folder], look }
    const ruling = (line: string) => CommandRule.isReading(line, place)
    for (const line of [
      "cat a.txt",
      "cat src/*.ts",
      "wc -l *.txt",
      "cat missing",
      "cat < a.txt",
      "cd src && cat ../a.txt"
    ]) {
      assert.deepEqual([line, ruling(line)], [line, true])
    }
    for (const line of [
      "cat link",
      "cat l*",
      "cat linked/secret",
      "cat < link",
      "cd linked && cat secret",
      "cat .e*",
      "cat ./.en*",
      "ls linked"
    ]) {
      assert.deepEqual([line, ruling(line)], [line, false])
    }
    remove()
  })
})

it("does not take git for reading where its repository names programs", () => {
  const place = { ...where, namesPrograms: () => true }
  for (const line of ["git status", "git diff", "ls && git show"])
    assert.isFalse(CommandRule.isReading(line, place), line)
  assert.isTrue(CommandRule.isReading("ls", place))
  assert.isTrue(CommandRule.isReading("git status", { ...place, namesPrograms: () => false }))
})

describe("commands that an approval for good covers", () => {
  const decideAgain = (before: string, now: string) =>
    CommandRule.decide(now, where, [], [CommandRule.learn(before, where)])

  it("is an honest repetition: of 60, at most one is asked about", () => {
    assert.isAtLeast(honest.length, 60)
    assert.isAtMost(honest.filter(([before, now]) => decideAgain(before, now) === undefined).length, 1)
  })

  it("exclude 300 lines that write, reach out or run something else", () => {
    const all = Object.entries(pairs).flatMap(([before, lines]) => lines.map((line) => [before, line] as const))
    assert.isAtLeast(all.length, 300)
    assert.deepEqual(
      all.filter(([before, line]) => decideAgain(before, line) !== undefined),
      []
    )
  })

  it("is said in words", () => {
    const words = (line: string) => CommandRule.describe(CommandRule.learn(line, where), where)
    assert.equal(words("npm test -- a && git status"), "`npm test …` with files in the folder")
    assert.equal(words("make -j4 test"), "`make test …` with files in the folder")
    assert.equal(words("sh x.sh"), "exactly `sh x.sh`")
  })

  it("takes several approvals together, and none of a tool that would be downloaded", () => {
    const learned = ["npm test", "git add ."].map((line) => CommandRule.learn(line, where))
    assert.equal(CommandRule.decide("npm test && git add src && ls", where, [], learned)?.by, "learned")
    assert.equal(CommandRule.learn("npx oxlint", where).kind, "same")
  })
})

describe("rules", () => {
  const rule = (ruling: CommandRule.CommandRule["ruling"], command: string): CommandRule.CommandRule => ({
    ruling,
    command
  })
  const decide = (line: string, ...rules: ReadonlyArray<CommandRule.CommandRule>) =>
    CommandRule.decide(line, where, rules)?._tag

  it("allow each command of a line, with no more than their words say", () => {
    const test = rule("allow", "npm test:*")
    for (const line of [
      "npm test",
      "npm test -- -t x",
      "timeout 5 npm test",
      "npm test && git status",
      "CI=1 npm test | tail -5"
    ]) {
      assert.deepEqual([line, decide(line, test)], [line, "Allow"])
    }
    for (const line of [
      "npm tests",
      "npm test > x",
      "npm test && npm publish",
      "PATH=. npm test",
      "npm test $(x)",
      "npm",
      "npm run test",
      "npm test & x",
      "npm test < ~/x"
    ]) {
      assert.deepEqual([line, decide(line, test)], [line, undefined])
    }
    assert.equal(decide("npm run build", rule("allow", "npm run build")), "Allow")
    assert.equal(decide("npm run build -- x", rule("allow", "npm run build")), undefined)
    assert.equal(decide("npm run lint:fix", rule("allow", "npm run lint*")), "Allow")
    assert.equal(decide("npm run lint x", rule("allow", "npm run lint*")), undefined)
    assert.equal(decide("git push origin main", rule("allow", "git push * main")), "Allow")
    assert.equal(decide("git push origin x main", rule("allow", "git push * main")), undefined)
  })

  it("allow an option that writes or runs only if they name it", () => {
    const log = rule("allow", "git log:*")
    assert.equal(decide("git log /etc/x", log), "Allow")
    for (const line of ["git log --output=/x", "git log --outp x", "git log --ext-diff", "git -c a.b=c log"]) {
      assert.deepEqual([line, decide(line, log)], [line, undefined])
    }
    assert.equal(decide("git log --output=x", rule("allow", "git log --output:*"), log), "Allow")
    assert.equal(decide("sort ../* x", rule("allow", "sort:*")), "Allow")
    assert.equal(decide("sort *", rule("allow", "sort:*")), undefined)
    assert.equal(decide("npx -y x", rule("allow", "npx:*")), undefined)
  })

  it("ask and refuse behind everything in the text of a line, and before all else", () => {
    const push = rule("refuse", "git push:*")
    const lines = [
      "git push",
      "git -C . push origin",
      "git -c a.b=c push",
      "sudo git push",
      "env A=1 git push",
      "ls && git push",
      "echo $(git push)",
      "sh -c 'git push'",
      "g'i't push",
      "/usr/bin/git push",
      "xargs git push",
      "find . -exec git push ';'",
      "if true; then git push; fi",
      "echo git push | sh",
      "timeout 5 nice git push"
    ]
    for (const line of lines) assert.deepEqual([line, decide(line, push, rule("allow", "*"))], [line, "Refuse"])
    for (const line of ["git pull", "echo git push", "grep 'git push' a", "git commit -m push"]) {
      assert.notEqual(decide(line, push), "Refuse", line)
    }
    assert.equal(decide("ls", rule("ask", "ls:*"), rule("allow", "*")), "Ask")
    assert.equal(decide("ls; git push", rule("ask", "ls"), push), "Refuse")
    assert.equal(decide("f() { x; }; $(y)", rule("allow", "*")), "Allow")
  })

  it("say which of them decided", () => {
    const named = {
      ruling: "refuse",
      command: "git push:*",
      name: "user: Bash(git push:*)",
      reason: "Ada publishes."
    } as const
    const ruling = CommandRule.decide("git push", where, [named])
    assert.deepInclude(ruling, { _tag: "Refuse", by: "user: Bash(git push:*)" })
    assert.match(ruling?._tag === "Refuse" ? ruling.reason : "", /Ada publishes/)
    assert.equal(CommandRule.decide("ls", where, [])?.by, "reads")
  })

  it("are refused if unreadable; such a rule restricts everything and allows nothing", () => {
    for (const pattern of ["", ":*", "npm test && ls", "echo $(x)", "A=1 x", "ls > x", "a ** b"]) {
      assert.isTrue(Result.isFailure(CommandRule.parsePattern(pattern)), pattern)
    }
    assert.equal(decide("anything at all", rule("refuse", "a && b")), "Refuse")
    assert.equal(decide("a && b", rule("allow", "a && b")), undefined)
    const many = `x${"*a".repeat(2_000)}`
    assert.isBelow(
      spentBy(() => decide(`x${"a".repeat(3_000)}`, rule("allow", many))),
      5_000
    )
  })
})

describe("bash", () => {
  const tokens =
    "ls|cat|git|find|rm|npm|echo|log|status|-la|-x|a|b.txt|'q r'|\"d e\"|\\;|\\ |'|\"|;|&&|'||'|'|'|||&|\n|>|>>|/dev/null|2>&1|<|<<|<<<|$x|$(rm x)|`rm x`|{|}|(|)|{a,b}|#|!|~|*|?|[a]|A=1|A+=1|=ls|-|--|\\|\t|\r|$'\\x3b'|$\"x\"|time|timeout 5|nice|env|%1|@|é|\u202e|\u00a0|\\\n|2|1>b|&>b|>b|12>b|if|then|fi|'a'\"b\"c|a=b|^|^a^b|,|+|>&2|>&2x|2>&1x|'A'=1|x~y|a:~|[|]".split(
      "|"
    )
  const joints = ["|", "||", "|&", ">|b"]
  const line = fc
    .array(fc.tuple(fc.constantFrom(...tokens, ...joints), fc.constantFrom(" ", " ", "")), {
      minLength: 1,
      maxLength: 7
    })
    .map((parts) => parts.flat().join(""))

  it("runs only commands that the parser saw", { timeout: 900_000 }, () => {
    const lines = fc.sample(line, { numRuns: isFull ? 30_000 : 2_000, seed: 34 }).filter((one) => !one.includes("\0"))
    const parsed = lines.flatMap((one) => {
      const commands = parse(one)
      return commands === undefined ? [] : [{ one, commands }]
    })
    assert.isAbove(parsed.length, lines.length / 10)
    const ran = commandsByBash(parsed.map(({ one }) => one))
    assert.equal(ran.length, parsed.length)
    const wrong = parsed.flatMap(({ commands, one }, at) => {
      const seen = commands.flatMap(({ words }) => {
        const text = words.map((word) => word.text.replace(/^~(?=\/|$)/, "/home/u")).join(" ")
        // A keyword of bash that stands in front of the command.
        return [text, text.replace(/^(?:time (?:-p )?)+/, ""), words.map((word) => word.text).join(" ")]
      })
      const extra = (ran[at] ?? []).filter((command) => !seen.includes(command))
      return extra.length === 0 ? [] : [{ one, extra, seen }]
    })
    assert.equal(JSON.stringify(wrong.slice(0, 10)), "[]")
    assert.isAbove(ran.flat().length, parsed.length / 2)
  })

  const programs = [
    ...new Set(reads.free.flatMap((one) => (parse(one) ?? []).map(({ words }) => words[0]?.text ?? "")))
  ]
  const actions = [
    "status",
    "log",
    "diff",
    "show",
    "stash list",
    "config --get",
    "branch",
    "tag",
    "grep",
    "reflog",
    "cat-file"
  ]
  const words =
    "-a|-o|-x|-n|-l|-r|-e|-i|-p|-c|-f|-t|-ox|-o x|--output=x|--output x|--outp=x|-exec rm {} +|-delete|-fprint x|--pre ./x|--compress-program=./x|-w x|w|1p|'1e touch x'|'w x'|s/a/b/|'s/a/b/w x'|'{print}'|'{print > \"x\"}'|'BEGIN{system(\"touch x\")}'|a.txt|b.txt|src|src/a.ts|*|*.txt|src/*|.|..|link|linked|.env|x|HEAD|HEAD~1|foo|'x[$(touch x)]'|-v|-s|-m x|--set=x|-F x|> x|>> x|2>/dev/null|< a.txt|\\| tee x|tf|xf|--list|-d|-D|-C|-R|-u|-z|--|-k1|-I ./x|--textconv|--ext-diff|-O./x|+%s|0|1".split(
      "|"
    )
  const command = fc
    .tuple(
      fc.constantFrom(...programs, ...actions.map((action) => `git ${action}`)),
      fc.array(fc.constantFrom(...words), { maxLength: 4 })
    )
    .map(([program, rest]) => [program, ...rest].join(" "))
  const some = fc
    .array(fc.tuple(command, fc.constantFrom(" && ", " | ", "; ", " || ")), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.map(([one, joint], at) => (at === parts.length - 1 ? one : `${one}${joint}`)).join(""))

  it("changes no file and shows no secret by free commands", { timeout: 1_800_000 }, () => {
    const { folder, remove } = makeProject()
    const place: CommandRule.Where = { cwd: folder, folders: [folder], look }
    const lines = new Set<string>()
    const wanted = isFull ? 3_000 : 150
    for (let seed = 1; lines.size < wanted && seed < 2_000; seed++) {
      for (const one of fc.sample(some, { numRuns: 2_000, seed })) {
        // Listings of processes and waiting say nothing of files, and take long.
        if (lines.size < wanted && !/lsof|ps|pgrep|sleep|npm|docker/.test(one) && CommandRule.isReading(one, place))
          lines.add(one)
      }
    }
    assert.equal(lines.size, wanted)
    const before = digestOf(folder)
    const all = [...lines]
    for (let at = 0; at < all.length; at += 50) {
      const batch = all.slice(at, at + 50)
      const out = runLines(folder, batch)
      assert.notInclude(out, "the-secret", JSON.stringify(batch))
      assert.equal(digestOf(folder), before, JSON.stringify(batch))
    }
    // The namespace lets the folder be written, so that the check can fail.
    runLines(folder, ["touch made"])
    assert.notEqual(digestOf(folder), before)
    remove()
  })
})
