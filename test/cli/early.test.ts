/** The program in a real pseudo-terminal, from its first prompt on. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { isFull } from "../scale.ts"
import { build } from "./built.ts"
import { opener, type Program } from "./program.ts"

let program: ReturnType<typeof build>
beforeAll(() => {
  program = build()
}, 60_000)
afterAll(() => program.remove())

const opened = opener()
const open = (args: ReadonlyArray<string>): Program =>
  opened([program.bin, ...args, "--cwd", program.folder()], {
    env: { HOME: mkdtempSync(join(tmpdir(), "deepagents-home-")) }
  })

const ready = "/ commands"

describe("the first prompt", { timeout: 60_000 }, () => {
  it("keeps keys and pastes until the chat is there, and is on the screen once", async () => {
    const chat = open(["--demo"])
    await chat.until(ready)
    expect(chat.text()).toMatch(/^› ?\nask · deep · demo:script · \/ commands · @ files · ! shell$/)
    chat.type("What is")
    chat.type("\u001b[200~ in this folder?\u001b[201~\r")
    await chat.until("Esc interrupts")
    await chat.until((text) => text.includes("› What is in this folder?"))
    expect(chat.text().split(ready).length).toBeLessThanOrEqual(2)
  })

  it("goes away when the chat can't begin, and leaves the terminal as it was", async () => {
    const chat = open(["--demo", "--agent", "nobody"])
    expect(await chat.ended).toBe(2)
    await chat.until((text) => text.includes("nobody") && !text.includes(ready))
    expect(chat.raw()).toContain(ready)
    expect(chat.raw()).toContain("\u001b[?2004l")
  })

  it.runIf(isFull)("is left by Ctrl-C at once", async () => {
    const chat = open(["--demo"])
    await chat.until(ready)
    chat.type("\u0003")
    expect(await chat.ended).toBeOneOf([0, 130])
    expect(chat.raw()).toContain("\u001b[?2004l")
  })

  it.runIf(isFull)("is not there without a screen", async () => {
    const chat = open(["--demo", "--plain"])
    await chat.until("> ")
    expect(chat.raw()).not.toContain("\u001b[")
  })
})
