import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Approval, type Json } from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import fc from "fast-check"
import { automatic, makeDesk } from "../../src/cli/internal/approvals/desk.ts"
import * as Dialog from "../../src/cli/internal/approvals/dialog.ts"
import { describeWithOrigin, learn, type LearnedRules, likeOf } from "../../src/cli/internal/approvals/learned.ts"
import { makePermits } from "../../src/cli/internal/approvals/permits.ts"
import { previewOf } from "../../src/cli/internal/approvals/preview.ts"
import { styleOf } from "../../src/cli/internal/render/style.ts"

const request = (toolName: string, args: Json.JsonObject, more?: Partial<Approval.Request>): Approval.Request => ({
  id: "r1",
  runId: "run",
  callId: "c",
  path: ["root", "helper"],
  toolName,
  arguments: args,
  description: "May I?",
  allow: ["approve", "edit", "reject", "respond"],
  at: 0,
  ...more
})
const permits = makePermits("/home/u/p", FileTools.make({ execute: true }))
const run = (command: string, more?: Partial<Approval.Request>) => request("execute", { command }, more)

describe('the meaning of "always"', () => {
  const learned = (...asked: ReadonlyArray<Approval.Request>) =>
    asked.map((one) => learn(one, likeOf(one, permits), "chat"))
  const isFree = (before: ReadonlyArray<LearnedRules>, now: Approval.Request) =>
    automatic(now, "ask", permits, before)?._tag === "Approve"

  it("is an action for commands that are known, each part of a line by itself, and in words", () => {
    const [one] = learned(run("npm test -- a.test.ts"))
    assert(one !== undefined)
    expect(describeWithOrigin(one, permits)).toBe(
      "`npm test …` with files in the folder, by root › helper, in this chat"
    )
    expect(isFree([one], run("npm test -- b.test.ts && git status"))).toBe(true)
    for (const other of [
      "npm publish",
      "npm test && rm -rf /",
      "npm test; rm x",
      "npm test | sh",
      "npm test $(rm x)",
      "npm test > /etc/passwd",
      "npm test & rm x",
      "NODE_OPTIONS=x npm test",
      "npm --prefix / test"
    ]) {
      expect([other, isFree([one], run(other))]).toEqual([other, false])
    }
    expect(isFree(learned(run("npm test"), run("git add .")), run("npm test && git add a.ts"))).toBe(true)
    expect(isFree([one], run("npm test", { path: ["root"] }))).toBe(false)
    expect(isFree([one], { ...run("npm test"), toolName: "other" })).toBe(false)
    // In the project, all agents share it.
    const shared = learn(run("npm test"), likeOf(run("npm test"), permits), "project")
    expect(isFree([shared], run("npm test", { path: ["root"] }))).toBe(true)
    expect(describeWithOrigin(shared, permits)).toBe("`npm test …` with files in the folder, in this project")
  })

  it("is the line itself for other commands: wrappers, interpreters, options that write", () => {
    for (const [before, now] of [
      ["env x", "env rm x"],
      ["git log -1 --output=a", "git log --format=%B --output=.git/hooks/pre-commit -1"],
      ["find . -name x -delete", "find victim -delete"],
      ["sh a.sh", "sh b.sh"]
    ] as const) {
      const [one] = learned(run(before))
      assert(one !== undefined)
      expect(describeWithOrigin(one, permits)).toContain(`exactly \`${before}\``)
      expect(isFree([one], run(before))).toBe(true)
      expect([now, isFree([one], run(now))]).toEqual([now, false])
    }
  })

  it("covers no command that hides another one", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(";", "&&", "||", "|", "&", "\n", "$(", "`", ">", "<("),
        fc.string({ maxLength: 10 }),
        (mark, rest) => {
          expect(isFree(learned(run("npm test")), run(`npm test ${mark} evil ${rest}`))).toBe(false)
        }
      )
    )
  })

  it("is a folder for files, which no path leads out of, and else this very call", () => {
    const [one] = learned(request("write_file", { file_path: "/src/a.ts" }))
    assert(one !== undefined)
    expect(isFree([one], request("write_file", { file_path: "/src/b/c.ts" }))).toBe(true)
    expect(isFree([one], request("write_file", { file_path: "/src/../etc/x" }))).toBe(false)
    expect(isFree([one], request("write_file", { file_path: "/srcx/a" }))).toBe(false)
    const same = learned(request("send", { to: "ada" }))
    expect(isFree(same, request("send", { to: "ada" }))).toBe(true)
    expect(isFree(same, request("send", { to: "bob" }))).toBe(false)
  })
})

describe("a dialog", () => {
  const keys = (dialog: Dialog.Dialog, ...pressed: ReadonlyArray<string>): Dialog.Outcome => {
    let outcome: Dialog.Outcome = { _tag: "Stay", dialog }
    for (const key of pressed) if (outcome._tag === "Stay") outcome = Dialog.press(outcome.dialog, key)
    return outcome
  }

  it("is answered by letters, never by Enter or Space", () => {
    const dialog = Dialog.dialogOf(run("ls"), permits)
    expect(keys(dialog, "\r", " ", "\t", "x", "\u001b[A")._tag).toBe("Stay")
    expect(keys(dialog, "y")).toMatchObject({ decision: { _tag: "Approve", id: "r1" } })
    expect(keys(dialog, "Y")).toMatchObject({ others: "approve" })
    expect(keys(dialog, "a")).toMatchObject({ learned: { scope: "chat", agent: "root › helper" } })
    expect(keys(dialog, "A")).toMatchObject({ learned: { scope: "project", like: { kind: "command" } } })
    // Every command is no approval that anybody means.
    expect(keys(dialog, "s")._tag).toBe("Stay")
    const other = Dialog.dialogOf(request("send", { to: "ada" }), permits)
    expect(keys(other, "s")).toMatchObject({ learned: { like: { kind: "any" } } })
    expect(keys(Dialog.dialogOf(run("ls", { allow: ["reject"] }), permits), "y", "a", "A", "s", "e", "Y")._tag).toBe(
      "Stay"
    )
  })

  it("rejects with a reason, which cancels the rest; edits arguments, which must be an object", () => {
    const reason = keys(Dialog.dialogOf(run("ls"), permits), "n")
    expect(reason._tag === "Stay" && Dialog.submit(reason.dialog, "no")).toMatchObject({
      decision: { _tag: "Reject", reason: "no" },
      others: "reject"
    })
    const edit = keys(Dialog.dialogOf(run("ls"), permits), "e")
    if (edit._tag !== "Stay") throw new Error("decided")
    expect(edit.draft).toContain('"command": "ls"')
    expect(Dialog.submit(edit.dialog, "[]")).toMatchObject({ _tag: "Stay", draft: "[]" })
    expect(Dialog.submit(edit.dialog, '{"command":"pwd"}')).toMatchObject({
      decision: { _tag: "Edit", arguments: { command: "pwd" } }
    })
  })

  it("fills a form: words, one of some, many of some; Enter takes only marked options", () => {
    const answer = {
      type: "object",
      required: ["name", "one"],
      properties: {
        name: { type: "string", title: "Your name?" },
        one: { type: "string", enum: ["a", "b"] },
        many: { type: "array", items: { type: "string", enum: ["x", "y", "z"] } }
      }
    }
    const dialog = Dialog.dialogOf(request("ask_user", {}, { answer, allow: ["respond", "reject"] }), permits)
    expect(Dialog.lines(dialog, { waiting: 1, isArmed: true, now: 0 }, styleOf(false))[0]).toBe("Your name? (1 of 3)")
    expect(Dialog.submit(dialog, " ")).toMatchObject({
      _tag: "Stay",
      dialog: { problem: "Your name?: this needs an answer" }
    })
    const named = Dialog.submit(dialog, "Ada")
    if (named._tag !== "Stay") throw new Error("decided")
    expect(keys(named.dialog, "\r", "\r")).toMatchObject({ _tag: "Stay", dialog: { form: { at: 1 } } })
    expect(keys(named.dialog, "2", "\r", "1", "3", "\r")).toMatchObject({
      decision: { _tag: "Respond", value: { name: "Ada", one: "b", many: ["x", "z"] } }
    })
    expect(keys(named.dialog, "\u001b")).toMatchObject({ decision: { _tag: "Reject" } })
  })

  it("shows the whole approved call, and hidden characters in it", () => {
    const lines = Dialog.announcement(run(`rm \u202E-rf /\n${"x".repeat(5_000)}\u001b[2J`), styleOf(false)).join("\n")
    expect(lines).toContain("rm ‹U+202E›-rf /")
    expect(lines).toContain("x".repeat(5_000))
    expect(lines).toContain("‹U+001B›[2J")
  })
})

describe("a dialog in a narrow terminal", () => {
  it("has its keys on lines of 40 columns, for any call", () => {
    for (const one of [
      run("npm test -- a.test.ts"),
      run(`sh ${"very-long-name-".repeat(20)}`),
      request("write_file", { file_path: "/src/deep/deeper/a.ts" }),
      request("mcp__server__tool", { text: "x".repeat(300) }),
      run("ls", { byPerson: true })
    ]) {
      const dialog = Dialog.dialogOf(one, permits)
      const shown = Dialog.lines(dialog, { waiting: 3, isArmed: true, now: 0 }, styleOf(false))
      expect(shown.slice(1).filter((line) => line.length > 40)).toEqual([])
      expect(shown.join("\n")).toMatch(/y yes +n no, and why +e edit\nY yes to all 3/)
    }
  })
})

describe("the change of a call", () => {
  const edit = (old_string: string, more: Json.JsonObject = {}) =>
    request("edit_file", { file_path: "/a.ts", old_string, new_string: "two", ...more }, { editsFiles: true })
  const text = "one\r\nthree\r\none\r\n"

  it.effect("is shown as its diff, in place of its texts", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBackend.make()
      yield* memory.write("/a.ts", text)
      const lines = Effect.fnUntraced(function* (one: Approval.Request) {
        const preview = yield* previewOf(memory, one)
        assert(typeof preview === "object")
        return Dialog.announcement(one, styleOf(false), preview).slice(1)
      })
      const changed = yield* lines(edit("three"))
      expect(changed).toContain("-three")
      expect(changed).toContain("+two")
      expect(changed.join("\n")).not.toMatch(/old_string|new_string/)
      expect(yield* lines(edit("one", { replace_all: true }))).toContain("replace_all: true")
      const made = yield* lines(
        request("write_file", { file_path: "/b.ts", content: "x\u202Ey\n" }, { editsFiles: true })
      )
      expect(made.slice(0, 1)).toEqual(["/b.ts (new)"])
      expect(made).toContain("+x‹U+202E›y")
      const over = yield* lines(
        request("write_file", { file_path: "/a.ts", content: "one\none\n" }, { editsFiles: true })
      )
      expect(over).toContain("-three")
      expect(yield* previewOf(memory, run("ls"))).toBeUndefined()
    })
  )
})

describe("the reason of a question", () => {
  const notes = (toolName: string, args: Json.JsonObject, description: string) =>
    Dialog.announcement(request(toolName, args, { description }), styleOf(false)).slice(1)

  it("is shown behind the call: the risk of a command, and the reason of a rule", () => {
    expect(notes("execute", { command: "rm -r a\nb" }, "rm -r a\nb\ndeletes: a\nText from outside.")).toEqual([
      "rm -r a",
      "b",
      "deletes: a",
      "Text from outside."
    ])
    expect(notes("write_file", { file_path: "/a" }, "write_file file_path: /a\nText from outside.")).toEqual([
      "file_path: /a",
      "Text from outside."
    ])
    expect(notes("write_file", { file_path: "/a" }, "write_file file_path: /a")).toEqual(["file_path: /a"])
    expect(notes("pay", { n: 1 }, "Pays one\u001b[2J euro")).toEqual(["n: 1", "Pays one‹U+001B›[2J euro"])
  })
})

describe("a question for a person alone", () => {
  it("leaves an approval for good to the rule that asks, and makes no rule of the chat", () => {
    const dialog = Dialog.dialogOf(request("write_file", { file_path: "/a" }, { byPerson: true }), permits)
    const outcome = Dialog.press(dialog, "a")
    expect(outcome).toMatchObject({ _tag: "Decided", decision: { _tag: "Approve", always: true } })
    expect(outcome).not.toHaveProperty("learned")
    expect(Dialog.press(dialog, "A")._tag).not.toBe("Decided")
    expect(Dialog.press(dialog, "s")._tag).not.toBe("Decided")
    expect(automatic(dialog.request, "yolo", permits, [learn(dialog.request, { kind: "any" }, "chat")])).toBeUndefined()
  })

  it("says how far an approval for good goes", () => {
    for (const [rule, words] of [
      ["Taint", "until more text from outside comes in"],
      ["HumanInTheLoop", "the same call with the same arguments; other rules may ask again"],
      ["shop", 'the calls that the rule "shop" covers with it']
    ] as const) {
      const dialog = Dialog.dialogOf(request("write_file", { file_path: "/a" }, { byPerson: true, rule }), permits)
      const shown = Dialog.lines(dialog, { waiting: 1, isArmed: true, now: 0 }, styleOf(false))
      expect(shown.join(" ").replaceAll(/\s+/g, " ")).toContain(words)
    }
  })
})

describe("the desk", () => {
  it.effect("decides by the mode, and asks about the rest; a question is always asked", () =>
    Effect.gen(function* () {
      const desk = makeDesk({
        mode: "auto-edit",
        principal: { id: "ada" },
        permits,
        look: () => Effect.undefined,
        onLearned: () => {},
        onChange: () => {}
      })
      const { decide } = yield* Effect.provide(Effect.service(Approval.Approvals), desk.layer)
      const edit = request("write_file", { file_path: "/a" }, { editsFiles: true })
      expect((yield* decide(edit))._tag).toBe("Approve")
      expect((yield* decide(run("ls")))._tag).toBe("Approve")
      const waiting = yield* Effect.forkChild(decide(run("npm test")), { startImmediately: true })
      expect(desk.waiting().length).toBe(1)
      const held = makePermits("/home/u/p", FileTools.make({ execute: true }), [], {
        problems: [],
        kept: [],
        containment: "all"
      })
      expect(automatic(run("npm test"), "auto-edit", held, [])?._tag).toBe("Approve")
      expect(automatic(run("npm test"), "ask", held, [])).toBeUndefined()
      expect(automatic(run("npm test", { rule: "Taint" }), "auto-edit", held, [])).toBeUndefined()
      const partly = makePermits("/home/u/p", FileTools.make({ execute: true }), [], {
        problems: [],
        kept: [],
        containment: "unapproved"
      })
      const isolated = request("execute", { command: "npm test", outside: false })
      const outside = request("execute", { command: "npm test", outside: true })
      expect(automatic(isolated, "auto-edit", partly, [])?._tag).toBe("Approve")
      for (const [one, mode, rules] of [
        [isolated, "ask", partly],
        [isolated, "auto-edit", permits],
        [outside, "auto-edit", partly],
        [run("npm test"), "auto-edit", partly],
        [request("execute", { command: "cat a.ts", outside: true }), "auto-edit", partly],
        [request("execute", { command: "npm test", outside: "false" }), "auto-edit", partly],
        [request("git_commit", { outside: false }), "auto-edit", partly]
      ] as const) {
        expect([one.arguments, automatic(one, mode, rules, [])]).toEqual([one.arguments, undefined])
      }
      // What is approved for good of the one is not for the other.
      const ofIsolated = learn(isolated, likeOf(isolated, partly), "project")
      expect(automatic(outside, "ask", partly, [ofIsolated])).toBeUndefined()
      expect(automatic(run("npm test"), "ask", partly, [ofIsolated])).toBeUndefined()
      expect(automatic(isolated, "ask", partly, [ofIsolated])?._tag).toBe("Approve")
      const ofOutside = learn(outside, likeOf(outside, partly), "project")
      expect(automatic(run("npm test"), "ask", partly, [ofOutside])?._tag).toBe("Approve")
      desk.add(learn(run("npm test"), likeOf(run("npm test"), permits), "chat"))
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "Approve", by: { id: "ada" } })
      desk.setMode("plan")
      expect((yield* decide(edit))._tag).toBe("Reject")
      expect((yield* decide(run("npm test")))._tag).toBe("Reject")
      expect((yield* decide(run("git status | head")))._tag).toBe("Approve")
      desk.setMode("yolo")
      expect((yield* decide(run("rm -rf /")))._tag).toBe("Approve")
      const question = yield* Effect.forkChild(decide(request("ask_user", {}, { answer: { type: "string" } })), {
        startImmediately: true
      })
      expect(desk.waiting().length).toBe(1)
      yield* Fiber.interrupt(question)
      expect(desk.waiting().length).toBe(0)
    })
  )
})
