/** Turns of the chat are taken back and made again: words and files, after a restart too. */
import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { beforeAll, describe, expect, it } from "vitest"
import { bundle } from "../bundle.ts"
import { isFull } from "../scale.ts"
import { makeFolder, opener, type Program } from "./program.ts"

let file = ""
beforeAll(() => {
  file = bundle(new URL("children/chat.ts", import.meta.url))
}, 60_000)

const opened = opener()
const open = (folder: string, ...args: ReadonlyArray<string>): Program =>
  opened([file, folder, "a", "--mode=yolo", ...args])

const down = "\u001b[B"

/** Says a line once the chat is ready, and waits for an answer that was not there before. */
const say = async (program: Program, line: string, wanted: string): Promise<void> => {
  await program.until("/ commands")
  const count = (text: string) => text.split(wanted).length
  const before = count(program.text())
  program.type(`\u0015${line}\r`)
  await program.until((text) => count(text) > before)
}

const yes = async (program: Program, wanted: string) => {
  program.type("y")
  await program.until(wanted)
}

/** A folder of the person's, in git: a clean file, a folder with files, a link. */
const makeProject = (): {
  readonly folder: string
  readonly at: (name: string) => string
  readonly text: (name: string) => string
} => {
  const folder = makeFolder()
  const at = (name: string) => join(folder, "files", name)
  mkdirSync(at("src"), { recursive: true })
  writeFileSync(at("src/a.txt"), "one\n")
  writeFileSync(at("src/b.txt"), "two\n")
  symlinkSync("src/a.txt", at("link"))
  execFileSync("sh", ["-c", "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"], {
    cwd: join(folder, "files")
  })
  return { folder, at, text: (name) => readFileSync(at(name), "utf8") }
}

describe("turns of the chat", { timeout: 90_000 }, () => {
  it("takes back a command's changes after kill -9 and resume, and makes them again", async () => {
    const { at, folder, text } = makeProject()
    const first = open(folder)
    await say(first, "sh rm -r src link; mkdir empty; printf '\\000\\001' > bin; echo new > made.txt", "The tool said:")
    await say(first, "/undo", "take back the words and these files?")
    first.kill("SIGKILL")
    await first.ended
    const second = open(folder, "--resume")
    await say(second, "/diff", "made.txt")
    expect(second.text()).toContain("binary, nothing → 2 bytes")
    expect(second.raw()).not.toContain("\u0001")
    await say(second, "/undo", "take back the words and these files?")
    expect(second.text()).toContain("made: a link to src/a.txt")
    await yes(second, "taken back (7 paths)")
    expect(text("src/a.txt") + text("src/b.txt")).toBe("one\ntwo\n")
    expect(readlinkSync(at("link"))).toBe("src/a.txt")
    expect(existsSync(at("empty")) || existsSync(at("bin")) || existsSync(at("made.txt"))).toBe(false)
    second.kill("SIGKILL")
    await second.ended
    const third = open(folder, "--resume")
    await say(third, "/redo", "bring back the words and these files?")
    await yes(third, "made again (7 paths)")
    expect(existsSync(at("src")) || existsSync(at("link"))).toBe(false)
    expect(lstatSync(at("empty")).isDirectory()).toBe(true)
    expect(text("made.txt")).toBe("new\n")
  })

  it.runIf(isFull)("shows both sides if the person changed a file since, and keeps or overwrites it", async () => {
    const { folder, text } = makeProject()
    const program = open(folder)
    await say(program, "sh echo by-agent > src/a.txt; echo by-agent > src/b.txt", "The tool said:")
    // The turn is recorded when it can be taken back.
    await say(program, "/undo", "take back the words and these files?")
    program.type("\r")
    await program.until((all) => !all.includes("take back the words and these files?"))
    writeFileSync(join(folder, "files/src/a.txt"), "by-person\n")
    await say(program, "/undo", "take back the words and these files?")
    expect(program.text()).toMatch(/changed by somebody since[^]*-by-agent[^]*\+by-person[^]*-by-person[^]*\+one/)
    await yes(program, "1 path changed by somebody since:")
    program.type("k")
    await program.until("taken back (1 path)")
    expect(text("src/a.txt") + text("src/b.txt")).toBe("by-person\ntwo\n")
    await say(program, "/redo", "bring back the words and these files?")
    await yes(program, "1 path changed by somebody since:")
    program.type("o")
    await program.until("made again (2 paths)")
    expect(text("src/a.txt")).toBe("by-agent\n")
    // The opposite direction brings back what was written over.
    await say(program, "/undo", "take back the words and these files?")
    program.type(`${down}\r`)
    await program.until((all) => all.includes("taken back (2 paths)"))
    expect(text("src/a.txt")).toBe("by-person\n")
  })

  it.runIf(isFull)(
    "goes back several turns with their files, or in the words alone; a copy has its turns",
    async () => {
      const { folder, text } = makeProject()
      const program = open(folder)
      await say(program, "sh echo 1 > src/a.txt", "The tool said:")
      await say(program, "sh echo 2 > src/a.txt; echo 2 > src/b.txt", "The tool said:")
      await say(program, "/rewind 1", "these turns changed 2 paths")
      program.type("\r")
      await program.until("take back the words and these files?")
      await yes(program, "back to before (2 paths)")
      expect(text("src/a.txt") + text("src/b.txt")).toBe("one\ntwo\n")
      await say(program, "/redo", "bring back the words and these files?")
      await yes(program, "made again (1 path)")
      await say(program, "/redo", "bring back the words and these files?")
      await yes(program, "made again (2 paths)")
      expect(text("src/a.txt") + text("src/b.txt")).toBe("2\n2\n")
      await say(program, "/fork", "a copy of the conversation")
      await say(program, "/undo", "take back the words and these files?")
      await yes(program, "taken back (2 paths)")
      expect(text("src/a.txt") + text("src/b.txt")).toBe("1\ntwo\n")
      await say(program, "/rewind 1", "these turns changed 1 path")
      program.type(`${down}\r`)
      await program.until("files are as they are")
      expect(text("src/a.txt")).toBe("1\n")
    }
  )

  it("changes nothing while another process is at work on the conversation", async () => {
    const { folder, text } = makeProject()
    const first = open(folder)
    await say(first, "sh echo 1 > src/a.txt", "The tool said:")
    const second = open(folder, "--resume")
    await second.until("/ commands")
    await say(first, "sh while ! test -e ../go; do sleep 0.05; done; echo 2 > src/a.txt", "execute")
    for (const command of ["/undo", "/rewind 1", "/tree"]) await say(second, command, "process is")
    expect(second.text()).not.toContain("take back")
    expect(text("src/a.txt")).toBe("1\n")
    writeFileSync(join(folder, "go"), "")
    await first.until((all) => all.split("The tool said:").length === 3)
    await say(first, "/undo", "take back the words and these files?")
    await yes(first, "taken back (1 path)")
    expect(text("src/a.txt")).toBe("1\n")
  })

  it("tells in a note, and in no line of a log, that the end of a turn could not be stored", async () => {
    const { folder } = makeProject()
    const program = open(folder)
    await say(program, "sh while ! test -e ../go; do sleep 0.05; done", "execute")
    renameSync(join(folder, "sessions.db"), join(folder, "elsewhere.db"))
    // The store looks for its file again after 100 ms.
    await pause(200)
    writeFileSync(join(folder, "go"), "")
    await program.until("failed ·")
    expect(program.text()).toContain("The end of a run could not be stored")
    expect(program.raw()).not.toContain("ERROR (#")
  })

  it("makes files again behind /tree, and gives back a long message whole", async () => {
    const { folder, text } = makeProject()
    const program = open(folder)
    const long = `sh echo 1 > src/a.txt # ${"word ".repeat(20)}end`
    await say(program, long, "The tool said:")
    await say(program, "/undo", "take back the words and these files?")
    await yes(program, "taken back (1 path)")
    // In the conversation, and in the draft.
    await program.until((all) => all.replaceAll(/\s+/g, " ").split(long).length > 2)
    await say(program, "/tree", "go over to the branch of …")
    program.type("\r")
    await program.until("on another branch")
    expect(text("src/a.txt")).toBe("one\n")
    await say(program, "/redo", "the words are here; make again their turn and these files?")
    await yes(program, "made again (1 path)")
    expect(text("src/a.txt")).toBe("1\n")
  })
})
