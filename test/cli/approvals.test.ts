import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Approval, type Json } from "effect-deepagents"
import fc from "fast-check"
import { automatic, makeDesk } from "../../src/cli/internal/approvals/desk.ts"
import * as Dialog from "../../src/cli/internal/approvals/dialog.ts"
import { covers, likeOf, prefixesOf, ruleFor, wordsOf } from "../../src/cli/internal/approvals/rules.ts"
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
const run = (command: string, more?: Partial<Approval.Request>) => request("execute", { command }, more)

describe("what always means", () => {
  it("is a prefix for commands, each part of a line by itself, and in words", () => {
    const rule = ruleFor(run("git status -s"), likeOf(run("git status -s")))
    expect(wordsOf(rule)).toBe("commands that begin with `git status …`, by root › helper, in this chat")
    expect(covers([rule], run("git status --short"))).toBe(true)
    for (const other of [
      "git push",
      "git status && rm -rf /",
      "git status; rm x",
      "git status | sh",
      "git status $(rm x)",
      "git status `rm x`",
      "git status > /etc/passwd",
      "git status & rm x",
      "git status\nrm x",
      "GIT_EDITOR=x git status",
      "git -C / status"
    ]) {
      expect([other, covers([rule], run(other))]).toEqual([other, false])
    }
    const both = [rule, ruleFor(run("ls"), likeOf(run("ls")))]
    expect(covers(both, run("git status && ls -l"))).toBe(true)
    expect(covers([rule], run("git status", { path: ["root"] }))).toBe(false)
    expect(covers([rule], { ...run("git status"), toolName: "other" })).toBe(false)
  })

  it("covers no command that hides another one", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(";", "&&", "||", "|", "&", "\n", "$(", "`", ">", "<("),
        fc.string({ maxLength: 10 }),
        (mark, rest) => {
          const rule = ruleFor(run("ls"), likeOf(run("ls")))
          const line = `ls ${mark} evil ${rest}`
          expect(covers([rule], run(line))).toBe(false)
        }
      )
    )
    expect(prefixesOf(`echo "a && b"`)).toBeUndefined()
  })

  it("is a folder for files, which no path leads out of, and else this very call", () => {
    const rule = ruleFor(
      request("write_file", { file_path: "/src/a.ts" }),
      likeOf(request("write_file", { file_path: "/src/a.ts" }))
    )
    expect(covers([rule], request("write_file", { file_path: "/src/b/c.ts" }))).toBe(true)
    expect(covers([rule], request("write_file", { file_path: "/src/../etc/x" }))).toBe(false)
    expect(covers([rule], request("write_file", { file_path: "/srcx/a" }))).toBe(false)
    const same = ruleFor(request("send", { to: "ada" }), likeOf(request("send", { to: "ada" })))
    expect(covers([same], request("send", { to: "ada" }))).toBe(true)
    expect(covers([same], request("send", { to: "bob" }))).toBe(false)
  })
})

describe("a dialog", () => {
  const keys = (dialog: Dialog.Dialog, ...pressed: ReadonlyArray<string>): Dialog.Outcome => {
    let outcome: Dialog.Outcome = { _tag: "Stay", dialog }
    for (const key of pressed) if (outcome._tag === "Stay") outcome = Dialog.press(outcome.dialog, key)
    return outcome
  }

  it("is answered by letters, never by Enter or Space", () => {
    const dialog = Dialog.dialogOf(run("ls"))
    expect(keys(dialog, "\r", " ", "\t", "x", "\u001b[A")._tag).toBe("Stay")
    expect(keys(dialog, "y")).toMatchObject({ decision: { _tag: "Approve", id: "r1" } })
    expect(keys(dialog, "Y")).toMatchObject({ others: "approve" })
    expect(keys(dialog, "s")).toMatchObject({ rule: { like: { kind: "any" } } })
    expect(keys(Dialog.dialogOf(run("ls", { allow: ["reject"] })), "y", "a", "s", "e", "Y")._tag).toBe("Stay")
  })

  it("rejects with a reason, which cancels the rest; edits arguments, which must be an object", () => {
    const reason = keys(Dialog.dialogOf(run("ls")), "n")
    expect(reason._tag === "Stay" && Dialog.submit(reason.dialog, "no")).toMatchObject({
      decision: { _tag: "Reject", reason: "no" },
      others: "reject"
    })
    const edit = keys(Dialog.dialogOf(run("ls")), "e")
    if (edit._tag !== "Stay") throw new Error("decided")
    expect(edit.draft).toContain('"command": "ls"')
    expect(Dialog.submit(edit.dialog, "[]")).toMatchObject({ _tag: "Stay", draft: "[]" })
    expect(Dialog.submit(edit.dialog, '{"command":"pwd"}')).toMatchObject({
      decision: { _tag: "Edit", arguments: { command: "pwd" } }
    })
  })

  it("fills a form: words, one of some, many of some; Enter takes nothing that was not marked", () => {
    const answer = {
      type: "object",
      required: ["name", "one"],
      properties: {
        name: { type: "string", title: "Your name?" },
        one: { type: "string", enum: ["a", "b"] },
        many: { type: "array", items: { type: "string", enum: ["x", "y", "z"] } }
      }
    }
    const dialog = Dialog.dialogOf(request("ask_user", {}, { answer, allow: ["respond", "reject"] }))
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

  it("shows all of what is approved, and what can't be seen in it", () => {
    const lines = Dialog.announcement(run(`rm \u202E-rf /\n${"x".repeat(5_000)}\u001b[2J`), styleOf(false)).join("\n")
    expect(lines).toContain("rm ‹U+202E›-rf /")
    expect(lines).toContain("x".repeat(5_000))
    expect(lines).toContain("‹U+001B›[2J")
  })
})

describe("the reason of a question", () => {
  const notes = (toolName: string, args: Json.JsonObject, description: string) =>
    Dialog.announcement(request(toolName, args, { description }), styleOf(false)).slice(1)

  it("is shown behind the call: what a command risks, and why a rule asks", () => {
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
    const dialog = Dialog.dialogOf(request("write_file", { file_path: "/a" }, { byPerson: true }))
    const outcome = Dialog.press(dialog, "a")
    expect(outcome).toMatchObject({ _tag: "Decided", decision: { _tag: "Approve", always: true } })
    expect(outcome).not.toHaveProperty("rule")
    expect(Dialog.press(dialog, "s")._tag).not.toBe("Decided")
    expect(automatic(dialog.request, "yolo", [ruleFor(dialog.request, { kind: "any" })])).toBeUndefined()
  })
})

describe("the desk", () => {
  it.effect("decides what the mode says, and asks about the rest; a question is always asked", () =>
    Effect.gen(function* () {
      const desk = makeDesk({ mode: "auto-edit", principal: { id: "ada" }, onChange: () => {} })
      const { decide } = yield* Effect.provide(Effect.service(Approval.Approvals), desk.layer)
      const edit = request("write_file", { file_path: "/a" }, { editsFiles: true })
      expect((yield* decide(edit))._tag).toBe("Approve")
      const waiting = yield* Effect.forkChild(decide(run("ls")), { startImmediately: true })
      expect(desk.waiting().length).toBe(1)
      desk.add(ruleFor(run("ls"), likeOf(run("ls"))))
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "Approve", by: { id: "ada" } })
      desk.setMode("plan")
      expect((yield* decide(edit))._tag).toBe("Reject")
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
